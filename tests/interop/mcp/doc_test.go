// Package mcp tests the built program against MCP servers that others made:
// the public reference servers, and servers on the official Python and Go SDKs,
// over every transport each of them has. It compares what the double and the real
// CLI send to servers on four SDKs, and lets OAuth clients of the SDKs log in to a
// fixture.
//
//	go test -count=1 -v -tags interop ./tests/interop/mcp
//
// Peers are installed, pinned, into INTEROP_DIR (default: claudeless-interop in
// the user's cache directory) and stay there. A peer that cannot be had is
// skipped and named in the last lines; with INTEROP_REQUIRE=1 it is a failure.
package mcp
