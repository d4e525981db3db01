// Package terminal plays a session on a terminal: it reads keys, draws the screen of an
// interactive claude in a plain layout, and asks its questions in dialogs.
//
// [Startup] asks the questions that precede a session, such as the trust of a folder.
// [Open] then builds the session, and [Terminal.Run] plays it. The screen is one more
// consumer of the session's events: package session runs the turns and decides what a
// question is about, this package only shows it and returns the answer.
//
// All state of the screen belongs to one goroutine, that of [Terminal.Run]. Other
// goroutines put messages into its mailbox.
package terminal
