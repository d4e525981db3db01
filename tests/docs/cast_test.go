package docs

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/tests/internal/tree"
)

// The recording in the README: typed commands, and their real output.
const (
	castFile    = "docs/cast.svg"
	castColumns = 104
	castLine    = 19  // pixels from one line to the next
	castPause   = 1.6 // seconds from one command to the next
)

// castScript contains the commands of the cast. Commands without a shell prompt prepare the directory.
var castScript = [...]string{
	"printf '#!/bin/sh\\nanswer=$(claude -p \"triage issue $1\") && echo \"issue $1: $answer\"\\n' >triage.sh",
	"printf '[[responses]]\\npattern = { type = \"regex\", pattern = \"issue \\\\\\\\d+$\" }\\nresponse = \"A bug in the parser.\"\\n' >triage.toml",
	"$ cat triage.sh",
	"$ cat triage.toml",
	"$ claudeless exec -s triage.toml -- sh triage.sh 7",
	"$ claudeless exec -s triage.toml -- sh triage.sh seven",
	"$ claudeless exec -s triage.toml --faults no-result,529-storm -- sh triage.sh 7",
}

// TestCast runs the commands of the cast and compares their output with docs/cast.svg. With -update it draws the file
// again.
func TestCast(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the verdict describes a different guard on this system")
	}
	at := &page{dir: t.TempDir()}
	var lines []string
	var starts []int // the indexes of the lines with commands
	for _, entry := range castScript {
		command, shown := strings.CutPrefix(entry, "$ ")
		out := at.run(t, command+"; true")
		if !shown {
			continue
		}
		starts = append(starts, len(lines))
		lines = append(lines, entry)
		for line := range strings.Lines(castText(out, at.dir)) {
			lines = append(lines, wrapLine(strings.TrimRight(line, "\n"), castColumns)...)
		}
		lines = append(lines, "")
	}
	got := drawCast(lines, starts)
	if *tree.Update {
		if err := os.WriteFile(filepath.Join(tree.Root, castFile), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != tree.ReadFile(t, castFile) {
		t.Errorf("%s does not show what the commands print; go test ./tests/docs -run TestCast -update draws it again. They print\n%s", castFile, strings.Join(lines, "\n"))
	}
}

// castText replaces the parts that differ from run to run.
func castText(out, dir string) string {
	out = strings.ReplaceAll(out, dir+"/", "")
	out = regexp.MustCompile(`\(process \d+\)`).ReplaceAllString(out, "(process 4711)")
	return regexp.MustCompile(`\d+\.\d s\b`).ReplaceAllString(out, "0.1 s")
}

// wrapLine cuts a line as a terminal with this number of columns does.
func wrapLine(line string, columns int) (rows []string) {
	for text := []rune(line); ; text = text[columns:] {
		if len(text) <= columns {
			return append(rows, string(text))
		}
		rows = append(rows, string(text[:columns]))
	}
}

// drawCast draws a terminal in which the commands appear one after the other with their output. Readers who prefer
// reduced motion see the whole text immediately.
func drawCast(lines []string, starts []int) string {
	var b strings.Builder
	width, height := castColumns*8+40, (len(lines)+1)*castLine+10
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="A terminal: claudeless exec with a green run, a red run, and two faults">
<style>
text { font: 13.3px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d7dae0; white-space: pre }
.command { fill: #fff; font-weight: bold } .bad { fill: #ff8b80 } .good { fill: #8ddb8c }
g { opacity: 0; animation: show 0.2s forwards } @keyframes show { to { opacity: 1 } }
@media (prefers-reduced-motion: reduce) { g { opacity: 1; animation: none } }
</style>
<rect width="100%%" height="100%%" rx="8" fill="#1e2127"/>
`, width, height, width, height)
	for i, start := range starts {
		end := len(lines)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		fmt.Fprintf(&b, "<g style=\"animation-delay: %.1fs\">\n", float64(i)*castPause)
		for n := start; n < end; n++ {
			if lines[n] != "" {
				fmt.Fprintf(&b, "<text x=\"20\" y=\"%d\"%s>%s</text>\n", (n+1)*castLine+6, castColour(lines[n], n == start), html.EscapeString(lines[n]))
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func castColour(line string, command bool) string {
	switch {
	case command:
		return ` class="command"`
	case strings.Contains(line, "error S") || strings.Contains(line, "verdict: failed") || strings.Contains(line, " lied "):
		return ` class="bad"`
	case strings.Contains(line, "verdict: ok"):
		return ` class="good"`
	}
	return ""
}
