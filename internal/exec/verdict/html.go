package verdict

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"github.com/claudeless/claudeless/internal/record/journal"
)

//go:embed page.html
var pageTemplate string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

// HTMLInput is the data of a report. The caller redacts Entries and Verdict before.
type HTMLInput struct {
	// Entries are the lines of one or more journals, ordered by time.
	Entries []journal.Entry
	// Verdict is the judgement of Entries.
	Verdict Report
	// ReadFile returns the contents of a scenario file, so that the report can show the lines around a rule; nil means
	// that the report shows no source.
	ReadFile func(name string) ([]byte, error)
}

type page struct {
	document
	Policy       string
	Style        template.CSS
	Script, Data template.JS
}

// WriteHTML writes the HTML report of a run: one self-contained page with the verdict, its causes, and everything
// that each claude process did. The page loads nothing from a network, and its Content-Security-Policy allows only
// the style and the script that are part of it. Without JavaScript it shows the verdict and the causes.
func WriteHTML(w io.Writer, in HTMLInput) error {
	t, err := template.New("report").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("creating the report: %w", err)
	}
	d := buildDocument(in)
	data, err := json.Marshal(d.Runs) // escapes <, > and &
	if err != nil {
		return fmt.Errorf("creating the report: %w", err)
	}
	return t.Execute(w, page{
		document: d, Style: template.CSS(pageStyle), Script: template.JS(pageScript), Data: template.JS(data),
		Policy: "default-src 'none'; style-src '" + cspDigest(pageStyle) + "'; script-src '" + cspDigest(pageScript) + "'; img-src data:; base-uri 'none'; form-action 'none'",
	})
}

// cspDigest returns the source expression that allows a text in a Content-Security-Policy.
func cspDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
