"""A client on the official Python SDK against a fixture behind OAuth: login without a browser, a call, a refresh after
the token expired, and a step-up.

    python oauth_client.py URL
"""

import asyncio
import sys
from urllib.parse import parse_qs, urljoin, urlsplit

try:
    import httpx2 as httpx
except ImportError:
    import httpx
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

URL = sys.argv[1]
REDIRECT = "http://127.0.0.1:1/callback"


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


answer = {}


async def redirect(to):
    async with httpx.AsyncClient(follow_redirects=False) as http:
        location = (await http.get(to)).headers["location"]
    answer.update({k: v[0] for k, v in parse_qs(urlsplit(location).query).items()})


async def callback():
    return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))


async def main():
    storage = Storage()
    metadata = OAuthClientMetadata(
        client_name="interop", redirect_uris=[REDIRECT], token_endpoint_auth_method="none",
        grant_types=["authorization_code", "refresh_token"], response_types=["code"],
    )
    auth = OAuthClientProvider(URL, metadata, storage, redirect, callback)
    async with httpx.AsyncClient(auth=auth, follow_redirects=True) as http:
        async with Client(streamable_http_client(URL, http_client=http)) as session:

            async def call(name):
                result = await session.call_tool(name, {})
                print(name + ": " + result.content[0].text)

            await call("list_rows")
            async with httpx.AsyncClient() as control:
                await control.post(urljoin(URL, "/_claudeless/oauth/expire"))
            await call("list_rows")
            await call("delete_row")


asyncio.run(main())
