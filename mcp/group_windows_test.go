package mcp

// groupGone tells nothing here: there are no process groups.
func groupGone(int) bool { return true }
