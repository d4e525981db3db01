// A client on the official TypeScript SDK against a fixture behind OAuth: login without a browser, a call, a refresh
// after the token expired, and a step-up.
//
//	node oauth_client.mjs DIR URL   DIR has node_modules with the SDK
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [dir, url] = process.argv.slice(2);
const require = createRequire(dir + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
let sdk;
try {
  sdk = await load("@modelcontextprotocol/client");
} catch {
  sdk = { ...(await load("@modelcontextprotocol/sdk/client/index.js")), ...(await load("@modelcontextprotocol/sdk/client/streamableHttp.js")) };
}

const redirect = "http://127.0.0.1:1/callback";
const kept = {};
let code, state;
const provider = {
  redirectUrl: redirect,
  clientMetadata: { client_name: "interop", redirect_uris: [redirect], token_endpoint_auth_method: "none", grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] },
  state: () => "state-1",
  clientInformation: () => kept.client,
  saveClientInformation: (c) => void (kept.client = c),
  tokens: () => kept.tokens,
  saveTokens: (t) => void (kept.tokens = t),
  saveCodeVerifier: (v) => void (kept.verifier = v),
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: (d) => void (kept.discovery = d),
  discoveryState: () => kept.discovery,
  async redirectToAuthorization(to) {
    const answer = await fetch(to, { redirect: "manual" });
    state = new URL(answer.headers.get("location")).searchParams;
    code = state.get("code");
  },
};

// attempt runs a function. If it needs an authorization, attempt completes the login and runs it once more.
async function attempt(what, transport) {
  code = undefined;
  try {
    return await what();
  } catch (e) {
    if (!code) throw e;
    await transport().finishAuth(state);
    return await what();
  }
}

let transport, client;
const connect = async () => {
  transport = new sdk.StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  const finish = transport.finishAuth.bind(transport);
  transport.finishAuth = (params) => (finish.length > 0 && sdk.UnauthorizedError && sdk.LATEST_PROTOCOL_VERSION ? finish(params) : finish(params.get("code")));
  client = new sdk.Client({ name: "interop", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } }); // version 1 ignores it
  await client.connect(transport);
};
const call = async (name) => {
  const result = await client.callTool({ name, arguments: {} });
  console.log(name + ": " + result.content[0].text);
};
const control = (route) => fetch(new URL("/_claudeless/oauth/" + route, url), { method: "POST" });

await attempt(connect, () => transport);
await attempt(() => call("list_rows"), () => transport);
await control("expire");
await attempt(() => call("list_rows"), () => transport);
await attempt(() => call("delete_row"), () => transport);
await client.close();
