// Package claudecode describes Claude Code as data: its tools, commands and models, its init event, and the changes
// in each version. The tables were measured with the real CLI ([OldestMeasuredVersion] to [NewestMeasuredVersion]).
//
// [ProfileFor] answers every question about a version. No other package contains or compares version numbers.
package claudecode
