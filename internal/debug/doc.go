// Package debug is the breakpoint hub: breakpoints on tool names, calls that
// are stopped before or after they run, what somebody decided about them, and
// the records of all calls.
//
// Its one invariant: a pause is decided exactly once, by whoever comes first,
// and every front sees the same state because all of them call the same
// methods of one Hub. The package must not know how its callers and fronts
// talk to it; HTTP, MCP and the page are packages below it.
//
// # Callers
//
// A caller is what runs tool calls. It asks a [Gate] before and after each of
// them; [Middleware] does so around an executor. [Hub] is the gate within the
// process, package client the one over HTTP. Before and After are made of
// [Hub.Start], [Hub.Wait] and [Hub.Complete].
//
// What may be done to a call and how that is written is its [Caller]'s matter: the
// hub has the one of our callers, package compat that of the older clients, whose
// values ([Values]) and expressions ([Evaluator]) are theirs too.
//
// # Fronts
//
// Everything a front may do is one of these methods, which any number of
// goroutines may call:
//
//	breakpoints  Breakpoints, SetBreakpoint, RemoveBreakpoint, SetReplacement, Default, SetDefault
//	scripts      Rules, AddRule, Names
//	tools        Functions, RegisterFunction
//	pauses       Paused, Pause, Resume
//	values       Evaluate, StartSession, Session, Sessions, CloseSession, Value
//	records      Calls, History, Status
//	events       Subscribe
//
// The packages below: compat (the older clients, their routes and pages), rest (all
// other routes, and /api/events), external (other MCP servers), client (the gate
// over HTTP), hookcmd and proxy (callers that are programs of their own), script
// (the gate within a process, decided by a scenario), mcpface and page (fronts).
//
// Refusals are *[Error] with a code of the wire. Events are delivered through
// bounded queues: an observer that does not keep up loses events, learns how
// many, and delays nobody.
//
// # Time
//
// A pause may have a lease, which its caller renews by asking for the
// decision; when it lapses the pause is abandoned. Options.PauseTimeout ends
// the patience with those who should decide.
package debug
