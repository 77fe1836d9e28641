"""The database: tables, connections, migrations.

Several processes may write to one PostgreSQL at the same time, so whoever changes rows first locks
what the change rests on, always in this order and never in another:

    campaign → round → site → counter → the rest

and several rows of one kind in the order of their keys; whoever stores for label and for score
campaigns at once finishes locking for the former before the latter. Two transactions can then wait
for one another in one direction only, and none deadlocks. The locks, and what they keep still:

- a campaign `with_for_update(key_share=True)`: its state, its numbers, who enrols;
- a round `with_for_update(read=True)` for an answer, `key_share=True` for closing it, and all of
  them for abandoning their campaign, so that no late answer is stored after that;
- a site `with_for_update(key_share=True)`: its numbers, its counts, its uploads, what waits of it;
- a counter by the `UPDATE` that raises it, as late as possible: numbers are given in the order in
  which they become visible.

`key_share=True` is PostgreSQL's FOR NO KEY UPDATE, which lets rows that refer to the locked one be
inserted. SQLite has one writer at a time and leaves such clauses out.
"""
