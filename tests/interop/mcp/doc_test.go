// Package mcp tests the built program against third-party MCP servers: the public reference servers, and servers made
// with the official Python and Go SDKs, over every transport that each of them has. It compares the requests of
// claudeless and of the real CLI to servers of four SDKs, and lets OAuth clients of the SDKs log in to a fixture.
//
// go test -count=1 -v -tags interop ./tests/interop/mcp
//
// The servers are installed, with pinned versions, into INTEROP_DIR (default: claudeless-interop in the user's cache
// directory) and stay there. A server that cannot be installed is skipped and named in the last lines. With
// INTEROP_REQUIRE=1 that is a failure.
package mcp
