package verdict

import (
	"fmt"
	"io"
	"strings"
)

// writeAnnotations writes the report as GitHub workflow commands, which become annotations at the lines of the
// scenario.
func (r *Report) writeAnnotations(w io.Writer) error {
	var b strings.Builder
	for _, x := range r.Expectations {
		if !x.Met {
			annotate(&b, levelError, x.File, x.Line, x.Text+reasonSuffix(x.Got))
		}
	}
	for _, f := range r.Findings {
		text := f.ID + ": " + f.Text
		if f.Advice != "" {
			text += "\n" + f.Advice
		}
		annotate(&b, f.Level, f.File, f.Line, text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func annotate(b *strings.Builder, level, file string, line int, text string) {
	b.WriteString("::" + map[string]string{levelError: "error", levelWarn: "warning", levelInfo: "notice"}[level])
	switch {
	case file != "" && line > 0:
		fmt.Fprintf(b, " file=%s,line=%d", escapeProperty(file), line)
	case file != "":
		fmt.Fprintf(b, " file=%s", escapeProperty(file))
	}
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	b.WriteString("::" + data.Replace(text) + "\n")
}

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

func (r *Report) writeMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### claudeless: %s\n\n", r.Verdict)
	if len(r.Expectations) > 0 {
		b.WriteString("| expectation | met | |\n|---|---|---|\n")
		for _, x := range r.Expectations {
			met := "yes"
			if !x.Met {
				met = "**no**"
			}
			fmt.Fprintf(&b, "| %s%s | %s | %s |\n", location(x.File, x.Line), escapeCell(x.Text), met, escapeCell(x.Got))
		}
		b.WriteString("\n")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "- **%s %s**: %s\n", f.Level, f.ID, escapeCell(f.Text))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func escapeCell(s string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s) }
