// Package capture plays tapes with the real or simulated CLI and keeps their pages in books. Each tape runs as
// claudeless exec --real --tty: in a separate network with its scenario as the model and a private home directory.
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
	Self    string // the path of this binary
	Claude  string // the path of the real CLI; empty means the simulated one
	Root    string // root directory of the books
	Environ []string
	Books   []book.Key
	Tapes   []*tape.Tape
	Clock   tape.Clock
	// Parallel is how many tapes run at the same time; 0 means 2.
	Parallel int
	// Progress receives a line for each tape; nil means no output.
	Progress io.Writer
}

// Result is the outcome of one tape.
type Result struct {
	Tape    string   `json:"tape"`
	Book    string   `json:"book"`
	Pages   int      `json:"pages"`
	Seconds float64  `json:"seconds"`
	Wrong   []string `json:"wrong,omitempty"` // pages with a wrong label
	Failure string   `json:"failure,omitempty"`
	Details string   `json:"-"` // the screen and the end of the journal
}

// Failed reports whether the tape was not played to its end, or a label was wrong.
func (r *Result) Failed() bool { return r.Failure != "" || len(r.Wrong) > 0 }

type tapeWithTargetBook struct {
	tape *tape.Tape
	book book.Book
}

// Run captures all tapes for all books. The results are ordered by book, then by tape. A tape that fails has a result with
// a Failure; an error means that capturing is impossible.
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
		workers.Go(func() { // returns when the tape has ended
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
	err = s.play(ctx, &r)
	r.Seconds = o.Clock.Now().Sub(began).Seconds()
	step, isStep := errors.AsType[*tape.StepError](err)
	if isStep || err != nil && ctx.Err() == nil {
		r.Failure, r.Details = err.Error(), s.failureDetailsFromScreenAndJournal(step)
		return r, nil
	}
	return r, err
}

const maxJournalLinesInFailureDetails = 20

func fileTextOrEmpty(path string) string {
	text, _ := os.ReadFile(path) // empty if it cannot be read
	return string(text)
}
