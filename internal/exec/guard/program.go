package guard

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mostWords is how far a command line is looked at: the program, and the script that
// an interpreter runs, behind a few options.
const mostWords = 6

// programs remembers of files whether they are programs of the real CLI. The zero
// value is ready; it is for one goroutine.
type programs struct{ known map[string]bool }

// run is the file of a real claude that a command line runs, in a directory;
// empty = it runs none. The first word is the path of the program.
func (p *programs) run(own Own, words []string, dir string) string {
	if len(words) == 0 || words[0] == "" {
		return ""
	}
	file := resolve(words[0], dir)
	if file == "" || own.has(words[0]) {
		return ""
	}
	if p.real(own, file) {
		return file
	}
	if !interpreter(filepath.Base(file)) {
		return ""
	}
	at := slices.IndexFunc(words[1:], func(word string) bool { return !strings.HasPrefix(word, "-") })
	if at < 0 || slices.Contains(words[1:at+1], "-c") || slices.Contains(words[1:at+1], "-e") {
		return ""
	}
	script := resolve(words[1+at], dir)
	if script == "" || own.has(words[1+at]) || !programName(filepath.Base(script)) || !p.real(own, script) {
		return ""
	}
	return script
}

// resolve is the file that a path leads to; empty = there is none.
func resolve(path, dir string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return file
}

// interpreter tells by its name that a program runs the script that it is given.
func interpreter(name string) bool {
	name = strings.TrimRight(name, "0123456789.-")
	return slices.Contains([]string{"node", "nodejs", "bun", "deno", "sh", "bash", "dash"}, name)
}

// programName tells the names of programs in the packages of the real CLI from those of
// the other scripts there.
func programName(name string) bool {
	return strings.HasPrefix(name, "claude") || strings.HasPrefix(name, "cli.") || strings.HasPrefix(name, "cli-wrapper.")
}

// real tells whether a file is a program of the real CLI: by its place, or by what is
// in it, wherever it was copied to.
func (p *programs) real(own Own, file string) bool {
	is, known := p.known[file]
	if known {
		return is
	}
	placed := IsReal(file) && !strings.Contains(file, "/vendor/")
	is = !own.has(file) && (placed && !double(file) || signed(file))
	if p.known == nil {
		p.known = map[string]bool{}
	}
	p.known[file] = is
	return is
}

// signature is what every build of the real CLI says of its owner.
const signature = "(c) Anthropic PBC"

// signed tells from what a file holds that it is a program of the real CLI: a script
// that says so at its beginning, or a program that carries such a script.
func signed(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false
	}
	if bytes.HasPrefix(head, []byte("#!")) {
		return bytes.Contains(head[:n], []byte(signature))
	}
	info, err := file.Stat()
	const least = 20 << 20 // a program that carries an engine is larger
	if err != nil || info.Size() < least {
		return false
	}
	program, err := elf.NewFile(file)
	if err != nil {
		return false
	}
	carried := program.Section(".bun")
	return carried != nil && holds(carried.Open(), signature)
}

// holds tells whether a text is in what is read.
func holds(r io.Reader, text string) bool {
	buf := make([]byte, 1<<20)
	kept := 0
	for {
		n, err := r.Read(buf[kept:])
		if bytes.Contains(buf[:kept+n], []byte(text)) {
			return true
		}
		if err != nil {
			return false
		}
		end := kept + n
		kept = copy(buf, buf[max(0, end-len(text)):end])
	}
}

// double tells a copy of this program, which may have been put where the real CLI was.
func double(file string) bool {
	const most = 200 << 20 // larger ones are none, and take long to look through
	if info, err := os.Stat(file); err != nil || info.Size() > most {
		return false
	}
	info, err := buildinfo.ReadFile(file)
	return err == nil && strings.HasPrefix(info.Path, "github.com/claudeless/claudeless")
}
