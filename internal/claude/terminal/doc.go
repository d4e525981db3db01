// Package terminal plays a session on a terminal: it reads keys, draws the screen of an interactive claude in a plain
// layout, and asks its questions in dialogs.
//
// [Startup] asks the questions that precede a session, such as the trust of a folder. [Open] then builds the session,
// and [Terminal.Run] plays it. The screen is a consumer of the session's events. Package session runs the turns and
// creates the questions; this package only shows them and returns the answers. Only the goroutine of [Terminal.Run]
// uses the state of the screen. Other goroutines put messages into its mailbox.
package terminal
