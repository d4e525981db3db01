// Package capture saves screens of the real or simulated CLI. It plays tapes (scripts of keys) and stores the screens in one
// directory per CLI version. A tape runs as claudeless exec --real --tty, with a scenario as the model, in its own network.
package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/claudeless/claudeless/internal/screens/book"
	"github.com/claudeless/claudeless/internal/screens/tape"
)

// Options specify what to capture. All fields but Claude, Progress and Parallel are required.
type Options struct {
	Self     string // the path of this binary
	Claude   string // the path of the real CLI; empty means the simulated one
	Root     string // root directory of the captured screens
	Environ  []string
	Books    []book.BookID
	Tapes    []*tape.Tape
	Clock    tape.Clock
	Parallel int       // how many scripts of keys are played at the same time; 0 means 2
	Progress io.Writer // receives a line of text for each tape that ends; nil means no output
}

// Result is the outcome of one tape (a script of keys) in one book (the screens of one CLI version).
type Result struct {
	Tape    string   `json:"tape"`
	Book    string   `json:"book"`
	Pages   int      `json:"pages"`
	Seconds float64  `json:"seconds"`
	Wrong   []string `json:"wrong,omitempty"` // captured screens with a wrong state label
	Failure string   `json:"failure,omitempty"`
	Details string   `json:"-"` // the screen and the end of the journal
}

// Failed reports whether the script of keys was not played to its end, or a captured screen has a wrong state label.
func (r *Result) Failed() bool { return r.Failure != "" || len(r.Wrong) > 0 }

type tapeWithTargetBook struct {
	tape *tape.Tape
	book book.Book
}

// Run plays all tapes for all books. The results are ordered by book, then by tape. A tape that fails has a result with a
// Failure; an error means that capturing is impossible.
func Run(ctx context.Context, o Options) ([]Result, error) {
	var jobs []tapeWithTargetBook
	for _, key := range o.Books {
		for _, t := range o.Tapes {
			jobs = append(jobs, tapeWithTargetBook{t, book.New(o.Root, key)})
		}
	}
	results, done := make([]Result, len(jobs)), 0
	places := make(chan struct{}, cmp.Or(o.Parallel, 2))
	var mu sync.Mutex
	var failed error
	var workers sync.WaitGroup
	for i := range jobs {
		if places <- struct{}{}; ctx.Err() != nil {
			break
		}
		workers.Go(func() { // returns when the script of keys has ended
			r, err := o.runTape(ctx, jobs[i])
			mu.Lock()
			results[i], failed, done = r, errors.Join(failed, err), done+1
			o.reportProgress(&r, done, len(jobs))
			mu.Unlock()
			<-places
		})
	}
	workers.Wait()
	return results, errors.Join(failed, ctx.Err())
}

func (o *Options) reportProgress(r *Result, done, all int) {
	if o.Progress == nil {
		return
	}
	outcome := fmt.Sprintf("%d pages", r.Pages)
	if r.Failure != "" {
		outcome = "failed"
	}
	_, _ = fmt.Fprintf(o.Progress, "[%d/%d] %-14s %-28s %s, %.1f s\n", done, all, r.Tape, r.Book, outcome, r.Seconds)
}

func (o *Options) runTape(ctx context.Context, j tapeWithTargetBook) (Result, error) {
	r := Result{Tape: j.tape.Name, Book: j.book.String()}
	began := o.Clock.Now()
	s, err := newTapeRun(o, j)
	if err != nil {
		return r, err
	}
	defer s.removeTempDir()
	err = s.playReplacingCapturedFiles(ctx, &r)
	r.Seconds = o.Clock.Now().Sub(began).Seconds()
	step, isStep := errors.AsType[*tape.StepError](err)
	if isStep || err != nil && ctx.Err() == nil {
		r.Failure, r.Details = err.Error(), s.failureScreenAndJournal(step)
		return r, nil
	}
	return r, err
}

const maxJournalLinesInFailureDetails = 20

func fileTextOrEmpty(path string) string {
	text, _ := os.ReadFile(path) // empty if it cannot be read
	return string(text)
}
