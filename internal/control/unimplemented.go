package control

// accepted are requests that succeed without an effect: what they change has
// no counterpart in a simulated session.
func accepted() []string {
	return []string{
		"register_repo_root", // only the interactive display shows roots
		"seed_read_state",    // only NotebookEdit needs an earlier Read, and a Read of this session
	}
}

// refused are the requests that the real CLI serves and that are answered here
// as unsupported, each with the reason. Hosts meet the same answer from older
// versions of the real CLI.
func refused() map[string]string {
	return map[string]string{
		"set_color":                        "the real CLI refuses it as well without a display",
		"get_hooks_listing":                "the listing serves the interactive display",
		"file_suggestions":                 "completion serves the interactive display",
		"side_question":                    "needs a model beside the scripted one",
		"claim_session":                    "sessions are not handed between processes",
		"set_mcp_permission_mode_override": "not seen in use; its effects are unknown",
		"submit_feedback":                  "nothing leaves the machine",
	}
}
