package shellcmd

import "slices"

// InputListsFiles reports whether the command at i, such as xargs, reads names that come from a command which lists the
// files in its arguments, such as find or ls, possibly through filters that drop lines. Any other input may contain any
// file name.
func (s Script) InputListsFiles(i int) bool {
	for i--; i >= 0 && s.IsPipeline; i-- {
		c := s.Commands[i].Unwrapped()
		switch c.Name() {
		case "ls", "fd":
			return true
		case "find":
			return !containsAny(c.Args, "-printf", "-fprintf")
		case "git":
			return len(c.Args) > 1 && c.Args[1] == "ls-files"
		case "rg", "grep":
			if hasOption(c.Args[1:], "lL", "--files-with-matches", "--files-without-match") {
				return true
			}
			g, _ := grammarOf("grep")
			if rest, ok := g.parseOperands(c.Args[1:]); !ok || len(rest) != 1 || hasOption(c.Args[1:], "ef", "--regexp", "--file") {
				return false
			}
		case "sort", "uniq", "head", "tail":
			if slices.ContainsFunc(c.Args[1:], func(a string) bool { return a != "" && a[0] != '-' && !isNumber(a) }) {
				return false
			}
		default:
			return false
		}
	}
	return false
}
