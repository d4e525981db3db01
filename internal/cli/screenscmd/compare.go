package screenscmd

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/junit"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/screens/book"
)

// Diff compares the screens of two versions.
type Diff struct {
	JSON   bool   `name:"json" help:"Print the changes as JSON"`
	GitHub bool   `name:"github" help:"Also write GitHub Actions annotations to stderr"`
	Before string `arg:"" help:"Older version, or a directory of its screens"`
	After  string `arg:"" help:"Newer version, or a directory of its screens"`
}

// Run prints the changes, those of dialog options first, and exits with 1 if there are any changes.
func (c *Diff) Run(s *process.System) error {
	before, err := findBooks(s, c.Before)
	if err != nil {
		return err
	}
	after, err := findBooks(s, c.After)
	if err != nil {
		return err
	}
	changes, compared := []book.ScreenChange{}, 0
	for _, a := range before {
		for _, b := range after {
			if k := b.BookID; k.Renderer != a.Renderer || k.Tmux != a.Tmux || k.Cols != a.Cols || k.Rows != a.Rows {
				continue
			}
			compared++
			found, err := book.Compare(a, b)
			if err != nil {
				return err
			}
			changes = append(changes, found...)
		}
	}
	if compared == 0 {
		return badInputExitError("the two versions have no screens of the same renderer and size", "run `claudeless screens list` to see what is captured")
	}
	if err := c.print(s, changes); err != nil {
		return err
	}
	if len(changes) > 0 {
		return &process.ExitError{Code: exitScreensDiffer}
	}
	return nil
}

func (c *Diff) print(s *process.System, changes []book.ScreenChange) error {
	if c.GitHub {
		for _, x := range changes {
			if x.Kind == book.ChangedDialogOptions || x.Kind == book.ChangedStateOrTitle {
				fmt.Fprintf(s.Stderr, "::warning title=%s::%s\n", x.Page, strings.ReplaceAll(x.Text, "\n", "%0A"))
			}
		}
	}
	if c.JSON {
		return s.PrintIndentedJSON(changes)
	}
	counts, pages := map[book.ChangedScreenPart]int{}, map[string]bool{}
	for _, x := range changes {
		counts[x.Kind]++
		pages[x.Page] = true
		text := x.Text
		if x.Kind == book.ChangedPageText {
			text = "\n  " + strings.ReplaceAll(text, "\n", "\n  ")
		}
		fmt.Fprintf(s.Stdout, "%s: %s (%s): %s\n", x.Kind, x.Page, x.Book, text)
	}
	_, err := fmt.Fprintf(s.Stdout, "%d pages differ: %d changes of options, %d of labels, %d of texts, %d pages of one version only\n",
		len(pages), counts[book.ChangedDialogOptions], counts[book.ChangedStateOrTitle], counts[book.ChangedPageText], counts[book.PageInOneBookOnly])
	return err
}

// Check is the command that runs a detector (a program that recognizes screens) on captured screens.
type Check struct {
	Detector string   `required:"" placeholder:"FILE" help:"TOML file that describes how to run the detector"`
	In       string   `default:"tmux" enum:"terminal,tmux" placeholder:"PLACE" help:"Pages to use: tmux (captured inside tmux, the default) or terminal (captured outside tmux); a missing page is taken from the other set"`
	JSON     bool     `name:"json" help:"Print the report as JSON"`
	JUnit    string   `name:"junit" placeholder:"FILE" help:"Write the report as JUnit XML to FILE"`
	GitHub   bool     `name:"github" help:"Also write GitHub Actions annotations to stderr"`
	Markdown bool     `help:"Print the table only, as Markdown"`
	Versions []string `arg:"" optional:"" name:"version" help:"Versions or directories (default: all captured versions)"`
}

// Run prints the screens that the detector misjudged, and exits with 3 if there are any.
func (c *Check) Run(ctx context.Context, s *process.System) error {
	text, err := diag.ReadRegularFile(c.Detector)
	if err != nil {
		return newExitError(exitBadInput, fmt.Errorf("reading the detector file: %w", err))
	}
	path, err := filepath.Abs(c.Detector)
	if err != nil {
		return err
	}
	d, list := parseDetector(path, text)
	if list.Err() != nil {
		diag.Render(s.Stderr, list)
		return newExitError(exitBadInput, fmt.Errorf("%d errors in %s", len(list), c.Detector))
	}
	books, err := c.loadScreenBooks(s)
	if err != nil {
		return err
	}
	report, err := judgeDetectorOnPages(ctx, d, books, s.Environ)
	if err != nil {
		return err
	}
	if err := c.writeReports(s, report); err != nil {
		return err
	}
	if report.SumAnswerCounts("").Wrong > 0 {
		return &process.ExitError{Code: exitPagesMisjudged}
	}
	return nil
}

func (c *Check) loadScreenBooks(s *process.System) ([]book.Book, error) {
	var all []book.Book
	if len(c.Versions) == 0 {
		var err error
		if all, err = book.List(book.CacheRoot(s.Environ)); err != nil {
			return nil, err
		}
	}
	for _, v := range c.Versions {
		books, err := findBooks(s, v)
		if err != nil {
			return nil, err
		}
		all = append(all, books...)
	}
	if len(all) == 0 {
		return nil, badInputExitError("no screens have been captured", "capture them first: claudeless screens capture --in tmux --claude npm:VERSION")
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(b book.Book) bool { return b.Tmux != (c.In == "tmux") })
	if len(chosen) == 0 {
		fmt.Fprintf(s.Stderr, "claudeless: note: no pages were captured with --in %s; pages captured in other ways are checked instead\n", c.In)
		return all, nil
	}
	return chosen, nil
}

func (c *Check) writeReports(s *process.System, r *checkReport) error {
	if c.JUnit != "" {
		if err := writeJUnit(c.JUnit, r); err != nil {
			return fmt.Errorf("writing the JUnit report: %w", err)
		}
	}
	if c.GitHub {
		for _, v := range r.Verdicts {
			if v.IsWrong {
				fmt.Fprintf(s.Stderr, "::error title=%s::%s reports the wrong state: expected %s, got %s\n", v.Page, r.Detector, v.State, detectedStateOrFailureText(v))
			}
		}
	}
	switch {
	case c.JSON:
		return s.PrintIndentedJSON(r)
	case c.Markdown:
		_, err := fmt.Fprint(s.Stdout, answerCountTable(r, "| ", " | ", " |"))
		return err
	}
	for _, v := range r.Verdicts {
		if v.IsWrong {
			fmt.Fprintf(s.Stdout, "%s (%s): the state is %s, but %s reports %s\n", v.Page, v.Book, v.State, r.Detector, detectedStateOrFailureText(v))
		}
	}
	_, err := fmt.Fprint(s.Stdout, answerCountTable(r, "", "  ", ""))
	return err
}

func detectedStateOrFailureText(verdict pageVerdict) string {
	answer := diag.Shorten(verdict.Answer, 60)
	switch {
	case verdict.Meaning != "":
		return verdict.Meaning
	case answer != "" && verdict.Cause != "":
		return fmt.Sprintf("no state: %s (%q)", verdict.Cause, answer)
	case verdict.Cause != "":
		return "no state: " + verdict.Cause
	}
	return fmt.Sprintf("%q", answer)
}

func answerCountTable(r *checkReport, begin, between, end string) string {
	states := []string{"dialog", "permission", "plan", "question", "busy", "idle", "menu", "error", "ended"}
	states = slices.DeleteFunc(states, func(state string) bool {
		for _, counts := range r.Versions {
			if counts[state].Asked > 0 {
				return false
			}
		}
		return true
	})
	versions := slices.SortedFunc(maps.Keys(r.Versions), book.CompareVersions)
	var b strings.Builder
	line := func(first string, cells []string) {
		b.WriteString(begin + first + between + strings.Join(cells, between) + end + "\n")
	}
	line("wrong/asked", append(slices.Clone(states), "all"))
	if begin != "" {
		b.WriteString(strings.Repeat("|---", len(states)+2) + "|\n")
	}
	for _, v := range versions {
		var cells []string
		for _, state := range states {
			cells = append(cells, fmt.Sprintf("%d/%d", r.Versions[v][state].Wrong, r.Versions[v][state].Asked))
		}
		sum := r.SumAnswerCounts(v)
		line(v, append(cells, fmt.Sprintf("%d/%d", sum.Wrong, sum.Asked)))
	}
	return b.String()
}

// ListOrWriteScreenAnchors lists or writes anchors: the texts by which programs recognize the screens of a version.
type ListOrWriteScreenAnchors struct {
	Write   string `placeholder:"FILE" help:"Add the anchors of the captured pages to FILE, such as internal/screens/book/anchors.toml"`
	Version string `arg:"" optional:"" help:"Version or directory (default: the newest)"`
}

// Run prints the anchors of a version, the texts by which programs recognize its screens. With --write, it computes them from
// captured screens and writes them to a file.
func (c *ListOrWriteScreenAnchors) Run(s *process.System) error {
	known, err := book.LoadAnchorsOldestFirst()
	if err != nil {
		return err
	}
	if c.Write == "" {
		for i, v := range slices.Backward(known) {
			if v.Version == c.Version || c.Version == "" && i == len(known)-1 {
				_, err := fmt.Fprint(s.Stdout, book.ScreenAnchorsTOML([]book.VersionScreenAnchors{v}))
				return err
			}
		}
		return badInputExitError(fmt.Sprintf("there are no anchors (known texts of screens) for %s", c.Version), "add them from captured pages: claudeless screens anchors VERSION --write FILE")
	}
	if c.Version == "" {
		return badInputExitError("--write needs a version", "for example: claudeless screens anchors VERSION --write FILE")
	}
	books, err := findBooks(s, c.Version)
	if err != nil {
		return err
	}
	b, _ := book.NearestBook(books, book.BookID{Renderer: book.RendererFullscreen, Cols: 110, Rows: 36})
	pages, err := b.Pages()
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(c.Write); err == nil {
		if known, err = book.ParseScreenAnchorsTOML(c.Write, string(text)); err != nil {
			return err
		}
	}
	v := book.ChooseScreenAnchors(b.Version, pages)
	if err := v.CheckAnchorLimits(); err != nil {
		return err
	}
	if err := os.WriteFile(c.Write, []byte(book.ScreenAnchorsTOML(book.MergeAnchors(known, v))), 0o644); err != nil {
		return fmt.Errorf("writing the anchors file: %w", err)
	}
	_, err = fmt.Fprintf(s.Stdout, "%d anchors of %s\n", len(v.Anchors), v.Version)
	return err
}

func writeJUnit(file string, r *checkReport) error {
	suite := junit.Suite{Name: r.Detector}
	for _, v := range r.Verdicts {
		c := junit.Case{Class: v.Book, Name: v.Page + " " + v.State}
		if v.IsWrong {
			c.Failure = &junit.Failure{Message: fmt.Sprintf("%s reports the state %[3]s for a screen in the state %[2]s", r.Detector, v.State, detectedStateOrFailureText(v))}
		}
		suite.Cases = append(suite.Cases, c)
	}
	var b bytes.Buffer
	if err := suite.Write(&b); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}
