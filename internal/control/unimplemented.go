package control

// accepted are requests that succeed without an effect: what they change has
// no counterpart in a simulated session.
func accepted() []string {
	return []string{
		"seed_read_state", // only NotebookEdit needs an earlier Read, and a Read of this session
	}
}

// refused are the requests that the real CLI serves and that are answered here
// as unsupported, each with the reason. Hosts meet the same answer from older
// versions of the real CLI.
func refused() map[string]string {
	return map[string]string{
		"set_color":        "the real CLI refuses it as well without a display",
		"file_suggestions": "completion serves the interactive display",
	}
}
