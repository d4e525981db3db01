package terminal

import "slices"

// screenCommands are slash commands for which the real CLI opens a separate screen or menu.
func screenCommands() []string {
	return []string{
		"/add-dir", "/background", "/branch", "/bug", "/desktop", "/export", "/feedback", "/help", "/hooks", "/ide", "/install-github-app", "/keybindings",
		"/login", "/logout", "/memory", "/mobile", "/permissions", "/plan", "/plugin", "/privacy-settings", "/release-notes", "/remote-control",
		"/resume", "/rewind", "/sandbox", "/skills", "/status", "/statusline", "/tasks", "/terminal-setup", "/theme", "/todos", "/upgrade", "/vim",
	}
}

// refuseCommand returns what is said about a command that only a real screen has.
func refuseCommand(word string) (said string, refused bool) {
	if !slices.Contains(screenCommands(), word) {
		return "", false
	}
	return word + " is not simulated by claudeless", true
}
