-- A ledger as version 0.2.0 of the client left it (`tacit_client` of commit a16ea1f, .iterdump()):
-- two campaigns, one joined with 3 records counted and 2 drawn, one left with 1 record dropped.
BEGIN TRANSACTION;
CREATE TABLE campaigns (
    number INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    signed TEXT NOT NULL,
    url TEXT NOT NULL,
    key TEXT NOT NULL,
    token TEXT,
    site TEXT NOT NULL,
    campaign_key BLOB CHECK (length(campaign_key) = 32),
    state TEXT NOT NULL CHECK (state IN ('joined', 'left', 'ended')),
    joined_at REAL NOT NULL,
    epsilon_nano INTEGER NOT NULL CHECK (epsilon_nano > 0)
);
INSERT INTO "campaigns" VALUES(1,'9cd9560dc13b92edabf349ab83325ee4c757b4103a0c22092c584f3b5854a191','{"payload":"{\"alpha\":0.1,\"classes\":[\"c0\",\"c1\",\"c2\"],\"closes\":\"2036-12-14T00:00:00Z\",\"delta\":null,\"epsilon\":1,\"evidence\":{\"kind\":\"probabilities\",\"model\":null},\"grid\":{\"even_steps\":2048,\"steps_per_octave\":32},\"guarantee\":\"nominal\",\"mechanism\":{\"name\":\"k-rr\",\"threshold\":\"11728895015837227237\"},\"method\":\"labels\",\"nonce\":\"38b9af73533edeee47d2360cb9fe65e0\",\"opens\":\"2026-01-01T00:00:00Z\",\"owner\":\"owner\",\"planned_n\":1000,\"retention\":\"features-until-folded\",\"score\":{\"name\":\"hps\"},\"tacit\":\"campaign\",\"title\":\"a campaign\",\"version\":\"1.0\"}","public_key":"3KWnsbUVo13cxx/D5q3UciIZfPdmXLgzb9F1aZlKKp4=","signature":"tPMmgcLlN/7Lrw6RadAkb/+9vgP7sKT1CHcsfSfR0htHxOu/7dQxmvJVpZEpDDEZ//9uXa1idl4BfupbBkoaAw=="}','http://127.0.0.1:9','a82ad81f90b6a66cd796f91b49cf8fbd8727bacaa1b9b391efd7084a6fb2ee98','tacit_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','a site',X'9503E2F4B6707DF4AF589E50DB4A52424E59FC5389363498333F11B4EA41D17D','joined',1.79499229573599100116e+09,1000000000);
INSERT INTO "campaigns" VALUES(2,'681b89f54fa733726136d9fcb2f43e80ff809e217dace4821fe694eba6158460','{"payload":"{\"alpha\":0.1,\"classes\":[\"c0\",\"c1\",\"c2\"],\"closes\":\"2036-12-14T00:00:00Z\",\"delta\":null,\"epsilon\":0.5,\"evidence\":{\"kind\":\"probabilities\",\"model\":null},\"grid\":{\"even_steps\":2048,\"steps_per_octave\":32},\"guarantee\":\"nominal\",\"mechanism\":{\"name\":\"k-rr\",\"threshold\":\"15167021023370688035\"},\"method\":\"labels\",\"nonce\":\"2b405404c60e2b54421bc6f2a6d9fbcc\",\"opens\":\"2026-01-01T00:00:00Z\",\"owner\":\"owner\",\"planned_n\":1000,\"retention\":\"features-until-folded\",\"score\":{\"name\":\"hps\"},\"tacit\":\"campaign\",\"title\":\"a campaign\",\"version\":\"1.0\"}","public_key":"ySGJgw3nCziofREalN8WqVZzxHF/HTfb0YPYS6yZ5qI=","signature":"7SFARE0yZJBETTQLRUp+uy+jE1ZrF3GqPZ4HIXWDVj6Kl1B0x7adea2YMMH5fTraHIJW55z63c2ID1N40MepAg=="}','http://127.0.0.1:9','93b122d28d0c8c8ada0aadad67bd76e79512f6bf60b60146cd8eee0e42c7a1cc',NULL,'a site',NULL,'left',1.79499229574883437153e+09,500000000);
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    ledger TEXT NOT NULL,
    secret BLOB NOT NULL CHECK (length(secret) = 32),
    sequence INTEGER NOT NULL DEFAULT 0,
    latest REAL NOT NULL DEFAULT 0, -- the latest time of a joining, drawing or restoring
    most_nano INTEGER NOT NULL DEFAULT 0, -- the most that one person has spent
    restored_floor REAL,
    spent_floor INTEGER NOT NULL DEFAULT 0 -- what everybody counts as having spent at least
);
INSERT INTO "meta" VALUES(1,'d478eb2d42babb937d1b95ce379854b8',X'ED2EAAA2708B1EA452B80D01479B248DE284724B96F7677DC695694FE8F47AF0',5,1.79499229575278973578e+09,2000000000,NULL,0);
CREATE TABLE records (
    campaign INTEGER NOT NULL REFERENCES campaigns (number),
    record BLOB NOT NULL CHECK (length(record) = 16),
    person BLOB NOT NULL CHECK (length(person) = 16),
    upload INTEGER NOT NULL REFERENCES uploads (number),
    PRIMARY KEY (campaign, record)
) WITHOUT ROWID;
INSERT INTO "records" VALUES(1,X'0375BCD4F3486B428D78427E342CDA03',X'9B1E01061DD5925E1AA9AA02A579299F',1);
INSERT INTO "records" VALUES(1,X'4280C5C44356E71E156126485532EE13',X'4A3E248B7F61A760277FC693D9770289',1);
INSERT INTO "records" VALUES(1,X'8BCC3E880E5F3A9C5CD4F992C90FA737',X'4A3E248B7F61A760277FC693D9770289',1);
INSERT INTO "records" VALUES(1,X'95B65B02F3F13CD236A37D1C95671798',X'91BBE19CEFB836CA7585537262FEA43B',2);
INSERT INTO "records" VALUES(1,X'FD4907C2CF9A7637CBBA225FB3EEE2B2',X'25DA43C8924C10A873DC8B2FA3423B3D',2);
INSERT INTO "records" VALUES(2,X'EF320AB03D6A9B10B4C902030286F760',X'71D2D09CE33C8877654D18023E826AC4',3);
CREATE TABLE spending (
    person BLOB PRIMARY KEY CHECK (length(person) = 16),
    nano INTEGER NOT NULL CHECK (nano > 0)
) WITHOUT ROWID;
INSERT INTO "spending" VALUES(X'25DA43C8924C10A873DC8B2FA3423B3D',1000000000);
INSERT INTO "spending" VALUES(X'4A3E248B7F61A760277FC693D9770289',2000000000);
INSERT INTO "spending" VALUES(X'71D2D09CE33C8877654D18023E826AC4',500000000);
INSERT INTO "spending" VALUES(X'91BBE19CEFB836CA7585537262FEA43B',1000000000);
INSERT INTO "spending" VALUES(X'9B1E01061DD5925E1AA9AA02A579299F',1000000000);
CREATE TABLE uploads (
    number INTEGER PRIMARY KEY,
    upload TEXT NOT NULL UNIQUE,
    campaign INTEGER NOT NULL REFERENCES campaigns (number),
    records INTEGER NOT NULL CHECK (records > 0),
    state TEXT NOT NULL CHECK (
        state IN ('drawn', 'accepted', 'counted', 'late', 'dropped', 'refused')
    ),
    body BLOB
);
INSERT INTO "uploads" VALUES(1,'8ecdaefa38e9c4e3c91355168a7792d7',1,3,'counted',X'7B2276657273696F6E223A22312E30222C2263616D706169676E223A2239636439353630646331336239326564616266333439616238333332356565346337353762343130336130633232303932633538346633623538353461313931222C2275706C6F6164223A223865636461656661333865396334653363393133353531363861373739326437222C226C6162656C73223A7B226474797065223A2275696E7438222C227368617065223A5B335D2C2264617461223A2241414543227D2C2270726F626162696C6974696573223A7B226474797065223A22666C6F61743332222C227368617065223A5B332C335D2C2264617461223A2267726F4E5054726F675475484948592F316D6B495036682B5954372F3258772B4A5339745067494C2F7A357258596F2B227D7D');
INSERT INTO "uploads" VALUES(2,'cac7839eabb53c21f29c65dff14ad1e9',1,2,'drawn',X'7B2276657273696F6E223A22312E30222C2263616D706169676E223A2239636439353630646331336239326564616266333439616238333332356565346337353762343130336130633232303932633538346633623538353461313931222C2275706C6F6164223A226361633738333965616262353363323166323963363564666631346164316539222C226C6162656C73223A7B226474797065223A2275696E7438222C227368617065223A5B325D2C2264617461223A224167453D227D2C2270726F626162696C6974696573223A7B226474797065223A22666C6F61743332222C227368617065223A5B322C335D2C2264617461223A2247354E36503958446D7A7A58785134374A33684650746B31456A39327348452B227D7D');
INSERT INTO "uploads" VALUES(3,'b04b543e9005605862c8401a1aeffc65',2,1,'dropped',NULL);
CREATE INDEX uploads_of_campaign ON uploads (campaign, state);
CREATE INDEX records_over_campaigns ON records (record, person);
CREATE TRIGGER meta_only_grows BEFORE UPDATE ON meta
WHEN NEW.sequence < OLD.sequence OR NEW.latest < OLD.latest OR NEW.most_nano < OLD.most_nano
    OR NEW.spent_floor < OLD.spent_floor OR NEW.secret IS NOT OLD.secret
    OR coalesce(NEW.restored_floor, 0) < coalesce(OLD.restored_floor, 0)
BEGIN SELECT RAISE(ABORT, 'a ledger does not go back'); END;
CREATE TRIGGER uploads_begin_drawn BEFORE INSERT ON uploads
WHEN NEW.state <> 'drawn' OR NEW.body IS NULL
BEGIN SELECT RAISE(ABORT, 'an upload begins as drawn, with its body'); END;
CREATE TRIGGER uploads_never_go_back BEFORE UPDATE OF state ON uploads
WHEN NEW.state <> OLD.state
    AND NOT (OLD.state = 'drawn')
    AND NOT (OLD.state = 'accepted' AND NEW.state IN ('counted', 'dropped'))
BEGIN SELECT RAISE(ABORT, 'the state of an upload never goes back'); END;
CREATE TRIGGER uploads_stay_the_same BEFORE UPDATE ON uploads
WHEN NEW.upload IS NOT OLD.upload OR NEW.campaign IS NOT OLD.campaign
    OR NEW.records IS NOT OLD.records
    OR (NEW.body IS NOT NULL AND NEW.body IS NOT OLD.body)
    OR (NEW.body IS NULL AND NEW.state = 'drawn')
BEGIN SELECT RAISE(ABORT, 'what was drawn stays as it is'); END;
CREATE TRIGGER uploads_stay BEFORE DELETE ON uploads
BEGIN SELECT RAISE(ABORT, 'what was drawn stays drawn'); END;
CREATE TRIGGER records_stay_the_same BEFORE UPDATE ON records
BEGIN SELECT RAISE(ABORT, 'what was drawn stays as it is'); END;
CREATE TRIGGER records_stay BEFORE DELETE ON records
BEGIN SELECT RAISE(ABORT, 'what was drawn stays drawn'); END;
CREATE TRIGGER spending_only_grows BEFORE UPDATE ON spending
WHEN NEW.person IS NOT OLD.person OR NEW.nano < OLD.nano
BEGIN SELECT RAISE(ABORT, 'what was spent stays spent'); END;
CREATE TRIGGER spending_stays BEFORE DELETE ON spending
BEGIN SELECT RAISE(ABORT, 'what was spent stays spent'); END;
CREATE TRIGGER campaign_keys_stay_erased BEFORE UPDATE ON campaigns
WHEN (NEW.campaign_key IS NOT NULL AND NEW.campaign_key IS NOT OLD.campaign_key)
    OR NEW.digest IS NOT OLD.digest OR NEW.key IS NOT OLD.key
    OR NEW.epsilon_nano IS NOT OLD.epsilon_nano
BEGIN SELECT RAISE(ABORT, 'a campaign has one key, drawn once'); END;
CREATE TRIGGER campaigns_stay BEFORE DELETE ON campaigns
BEGIN SELECT RAISE(ABORT, 'a campaign that was joined stays'); END;
COMMIT;
PRAGMA user_version = 1;
