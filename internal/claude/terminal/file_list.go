package terminal

import (
	"cmp"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

type fileList struct {
	dir      string // directory of the session
	word     string // the mention before the cursor; empty means none
	closed   bool   // the user pressed Esc; the list stays closed until the word changes
	paths    []string
	selected int // index in paths; -1 means none
}

func (l *fileList) update(c *composer) {
	word := regexp.MustCompile(`(?:^|\s)(@\S*)$`).FindStringSubmatch(string(c.draft[:c.cursor]))
	if word == nil || c.isShell() {
		l.word = ""
		return
	}
	if word[1] != l.word {
		*l = fileList{dir: l.dir, word: word[1], paths: matchingPaths(l.dir, word[1][1:]), selected: -1}
	}
}

func (l *fileList) isOpen() bool { return l.word != "" && !l.closed && len(l.paths) > 0 }

// press handles a key while the list is open. path replaces the mention; empty means none. Tab takes the first path if
// none is selected; Enter takes only a selected path.
func (l *fileList) press(k keyName) (path string, handled bool) {
	switch {
	case !l.isOpen():
		return "", false
	case k == keyUp:
		l.selected = (max(l.selected, 0) + len(l.paths) - 1) % len(l.paths)
	case k == keyDown:
		l.selected = (l.selected + 1) % len(l.paths)
	case k == keyEscape:
		l.closed = true
	case k == keyTab, k == keyEnter && l.selected >= 0:
		return l.paths[max(l.selected, 0)], true
	default:
		return "", false
	}
	return "", true
}

func (l *fileList) insert(c *composer, path string) {
	c.remove(c.cursor-len([]rune(l.word)), c.cursor)
	if path = "@" + path; !strings.HasSuffix(path, "/") {
		path += " "
	}
	c.insert(path)
	l.word, l.closed = strings.TrimSpace(path), true
}

func (l *fileList) rows(cols int) (rows []string) {
	for i, path := range l.paths {
		pointer := "  "
		if i == l.selected {
			pointer = promptGlyph + " "
		}
		rows = append(rows, truncate("  "+pointer+"+ "+path, cols))
	}
	return rows
}

// matchingPaths returns the files and directories below dir whose path contains the characters of a text in this order, the
// best ones first. An empty text matches the content of dir.
func matchingPaths(dir, text string) []string {
	const most, mostVisited = 5, 20_000
	var all []string
	visited := 0
	root := os.DirFS(dir)
	_ = fs.WalkDir(root, ".", func(path string, e fs.DirEntry, err error) error { // what cannot be read has no suggestions
		if visited++; err != nil || path == "." {
			return nil
		}
		skipped := path == ".git" || e.Name() == "node_modules"
		if visited > mostVisited {
			return fs.SkipAll
		}
		if e.IsDir() {
			path += "/"
		}
		if !skipped && matchesInOrder(path, text) {
			all = append(all, path)
		}
		if e.IsDir() && (skipped || text == "") {
			return fs.SkipDir
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(mentionRank(a, text), mentionRank(b, text)), strings.Compare(a, b))
	})
	return all[:min(len(all), most)]
}

func matchesInOrder(path, text string) bool {
	path = strings.ToLower(path)
	for _, r := range strings.ToLower(text) {
		_, rest, ok := strings.Cut(path, string(r))
		if !ok {
			return false
		}
		path = rest
	}
	return true
}

// mentionRank ranks matches: first paths that begin with the text, by depth; then paths that contain it; then others.
func mentionRank(path, text string) int {
	path, text = strings.ToLower(path), strings.ToLower(text)
	switch {
	case strings.HasPrefix(path, text):
		return strings.Count(strings.TrimSuffix(path, "/"), "/")
	case strings.Contains(path, text):
		return 1 << 10
	}
	return 1 << 20
}
