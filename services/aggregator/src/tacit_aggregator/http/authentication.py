"""Who is asking, and whether that role may."""

from typing import Annotated

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase

from tacit.protocol import Problems, Role
from tacit_aggregator.errors import Refusal
from tacit_aggregator.http.services import services_of
from tacit_aggregator.tokens.service import Identity

CALLER = "tacit.caller"
"""Where the caller's identity is put in the scope, for the log."""

_LONGEST_TOKEN = 200


class BearerToken(SecurityBase):
    """The security scheme of every route that is not public, and its check."""

    def __init__(self) -> None:
        self.model = HTTPBearer(
            description="A token from `tacit-aggregator token create` or an invitation."
        )
        self.scheme_name = "token"

    async def __call__(self, request: Request) -> Identity:
        """The caller, or a refusal that does not say why."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not 0 < len(token) <= _LONGEST_TOKEN:
            raise Refusal(Problems.UNAUTHENTICATED)
        caller = await services_of(request).tokens.identity(token)
        if caller is None:
            raise Refusal(Problems.UNAUTHENTICATED)
        request.scope[CALLER] = caller
        return caller


bearer_token = BearerToken()
Caller = Annotated[Identity, Depends(bearer_token)]


def require(caller: Identity, *roles: Role) -> None:
    """Refuse a caller of any other role."""
    if caller.role not in roles:
        wanted = " or ".join(role.value for role in roles)
        raise Refusal(Problems.FORBIDDEN, f"Only a token of role {wanted} may do this.")
