package screenscmd

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/screens/book"
)

const (
	detectorTimeout        = 5 * time.Second
	maxDetectorOutputBytes = 1 << 20
)

type pageVerdict struct {
	Page    string `json:"page"` // name of the captured screen: TAPE.PAGE
	Book    string `json:"book"`
	State   string `json:"state"`
	Answer  string `json:"answer"`          // output of the detector
	Meaning string `json:"means,omitempty"` // state that the answer stands for
	IsWrong bool   `json:"wrong,omitempty"`
	Cause   string `json:"cause,omitempty"` // why the detector gave no answer
}

type askedAndWrongCount struct {
	Asked int `json:"asked"`
	Wrong int `json:"wrong"`
}

type checkReport struct {
	Detector string                                   `json:"detector"`
	Versions map[string]map[string]askedAndWrongCount `json:"versions"` // has counts by version, and for each version by kind of state
	Verdicts []pageVerdict                            `json:"verdicts"`
}

// SumAnswerCounts returns the sum of the counts of a version, or of all versions for "".
func (r *checkReport) SumAnswerCounts(versionOrEmptyForAll string) askedAndWrongCount {
	var sum askedAndWrongCount
	for v, states := range r.Versions {
		for _, c := range states {
			if versionOrEmptyForAll == "" || v == versionOrEmptyForAll {
				sum.Asked, sum.Wrong = sum.Asked+c.Asked, sum.Wrong+c.Wrong
			}
		}
	}
	return sum
}

func judgeDetectorOnPages(ctx context.Context, detector *screenDetector, books []book.Book, environ []string) (*checkReport, error) {
	r := &checkReport{Detector: detector.Name, Versions: map[string]map[string]askedAndWrongCount{}, Verdicts: []pageVerdict{}}
	for _, b := range books {
		pages, err := b.Pages()
		if err != nil {
			return nil, err
		}
		asked := slices.DeleteFunc(pages, func(p book.Page) bool {
			_, ok := detector.acceptedStatesForPage(p.State)
			return !ok
		})
		answers, err := askDetector(ctx, detector, b, asked, environ)
		if err != nil {
			return nil, err
		}
		for i := range asked {
			r.addVerdict(detector.judgeAnswer(&asked[i], answers[i]), &asked[i])
		}
	}
	return r, nil
}

type detectorReplyToPage struct{ outputText, failureCause string }

func (d *screenDetector) judgeAnswer(p *book.Page, a detectorReplyToPage) pageVerdict {
	v := pageVerdict{Page: p.TapeDotName(), Book: p.String(), State: p.State, Answer: a.outputText, Cause: a.failureCause}
	right, _ := d.acceptedStatesForPage(p.State)
	if a.failureCause == "" {
		v.Meaning = d.stateForDetectorAnswer(a.outputText)
	}
	v.IsWrong = v.Meaning == "" || !slices.Contains(right, v.Meaning)
	if v.IsWrong && v.Cause == "" && v.Meaning == "" {
		v.Cause = "its answer is not listed in [answers]"
	}
	return v
}

func (r *checkReport) addVerdict(v pageVerdict, p *book.Page) {
	if r.Versions[p.Version] == nil {
		r.Versions[p.Version] = map[string]askedAndWrongCount{}
	}
	c := r.Versions[p.Version][p.StateBeforeSlash()]
	c.Asked++
	if v.IsWrong {
		c.Wrong++
	}
	r.Versions[p.Version][p.StateBeforeSlash()] = c
	r.Verdicts = append(r.Verdicts, v)
}

func askDetector(ctx context.Context, d *screenDetector, b book.Book, pages []book.Page, environ []string) ([]detectorReplyToPage, error) {
	if d.Each == "lines" {
		return askDetectorByBase64Lines(ctx, d, b, pages, environ)
	}
	answers := make([]detectorReplyToPage, len(pages))
	for i := range pages {
		input, err := pageInDetectorInputFormat(d, b, &pages[i])
		if err != nil {
			return nil, err
		}
		p := &pages[i]
		env := append(slices.Clone(environ),
			"SCREEN_COLS="+strconv.Itoa(p.Cols), "SCREEN_ROWS="+strconv.Itoa(p.Rows), "SCREEN_TITLE="+p.Title,
			"SCREEN_VERSION="+p.Version, "SCREEN_RENDERER="+p.Renderer, "SCREEN_RAW="+filepath.Join(b.Dir, p.Tape+".raw"))
		if d.Input == "tmux" {
			answers[i], err = runDetectorInTmux(ctx, d, &pages[i], input, env)
		} else {
			answers[i], err = runDetectorCommand(ctx, d, input, env, detectorTimeout)
		}
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func pageInDetectorInputFormat(detector *screenDetector, b book.Book, page *book.Page) ([]byte, error) {
	switch detector.Input {
	case "ansi":
		return []byte(page.ANSI), nil
	case "raw", "tmux":
		return b.RawOutputUpTo(page)
	}
	return []byte(page.Text), nil
}

func runDetectorCommand(ctx context.Context, d *screenDetector, stdin []byte, env []string, limit time.Duration) (detectorReplyToPage, error) {
	res, err := proc.Run(ctx, proc.RunOptions{
		Command: proc.Command{Path: proc.Shell, Args: []string{"-c", d.Command}, Env: env, Dir: d.Dir}, Stdin: stdin, Limit: maxDetectorOutputBytes, Timeout: limit,
	})
	if err != nil {
		return detectorReplyToPage{}, fmt.Errorf("running the command of the detector: %w", err)
	}
	a := detectorReplyToPage{outputText: strings.TrimSpace(string(res.Stdout))}
	switch {
	case res.TimedOut:
		a.failureCause = fmt.Sprintf("it did not exit within %s", limit)
	case res.Truncated:
		a = detectorReplyToPage{failureCause: "it wrote more than 1 MB"}
	case res.Exit.Code != 0 && a.outputText == "":
		a.failureCause = "it failed: " + res.Exit.String()
		if line, _, _ := strings.Cut(strings.TrimSpace(string(res.Stderr)), "\n"); line != "" {
			a.failureCause += ": " + line
		}
	}
	return a, nil
}

// askDetectorByBase64Lines runs the detector once: for each screen, the detector reads a line of base64 and writes a line.
func askDetectorByBase64Lines(ctx context.Context, d *screenDetector, b book.Book, pages []book.Page, environ []string) ([]detectorReplyToPage, error) {
	var all strings.Builder
	for i := range pages {
		text, err := pageInDetectorInputFormat(d, b, &pages[i])
		if err != nil {
			return nil, err
		}
		all.WriteString(base64.StdEncoding.EncodeToString(text) + "\n")
	}
	got, err := runDetectorCommand(ctx, d, []byte(all.String()), environ, detectorTimeout+time.Duration(len(pages))*100*time.Millisecond)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(got.outputText, "\n")
	answers := make([]detectorReplyToPage, len(pages))
	for i := range pages {
		switch {
		case got.failureCause != "":
			answers[i].failureCause = got.failureCause
		case i < len(lines):
			answers[i].outputText = strings.TrimSpace(lines[i])
		default:
			answers[i].failureCause = "the detector wrote fewer lines than there are pages; it must write one line for each page"
		}
	}
	return answers, nil
}

func runDetectorInTmux(ctx context.Context, d *screenDetector, p *book.Page, raw []byte, env []string) (detectorReplyToPage, error) {
	temp, err := proc.MakeTempDir("claudeless-tmux-")
	if err != nil {
		return detectorReplyToPage{}, err
	}
	defer func() { _ = temp.Remove() }() // a remaining directory in /tmp is harmless
	file := filepath.Join(temp.Path, "output")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return detectorReplyToPage{}, err
	}
	env = append(env, "TMUX_TMPDIR="+temp.Path, "SCREEN_SESSION=page", "TMUX=")
	size := []string{"-x", strconv.Itoa(p.Cols), "-y", strconv.Itoa(p.Rows)}
	show := "stty raw -echo; cat '" + file + "'; tmux wait-for -S shown; exec sleep 60"
	commands := [][]string{append([]string{"-u", "-f", "/dev/null", "new-session", "-d", "-s", "page"}, append(size, show)...), {"wait-for", "shown"}}
	defer func() { _, _ = runTmux(context.WithoutCancel(ctx), env, "kill-server") }() // the tmux server may not be running
	for _, args := range commands {
		if out, err := runTmux(ctx, env, args...); err != nil {
			return detectorReplyToPage{}, fmt.Errorf("showing the page in tmux: %w: %s", err, out)
		}
	}
	return runDetectorCommand(ctx, d, nil, env, detectorTimeout)
}

func runTmux(ctx context.Context, env []string, args ...string) (string, error) {
	res, err := proc.Run(ctx, proc.RunOptions{Command: proc.Command{Path: "tmux", Args: args, Env: env}, Combined: true, Timeout: detectorTimeout})
	if err == nil && (res.Exit.Code != 0 || res.TimedOut) {
		err = fmt.Errorf("tmux %s: %s", strings.Join(args, " "), res.Exit)
	}
	return strings.TrimSpace(string(res.Stdout)), err
}
