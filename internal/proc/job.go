package proc

import (
	"context"
	"fmt"
	"os"
)

// JobOptions describes a command for [StartJob].
type JobOptions struct {
	Command
	// Output receives what the command prints. The caller keeps it and may
	// close it when the job has started.
	Output *os.File
	// Aside is a descriptor as that of [RunOptions].
	Aside int
}

// Job is a command that nobody has to read from: what it prints goes to a
// file, so that it may outlive its caller's patience, and so may what it leaves
// behind. The caller must end it with [Job.Stop], or call [Job.Leave] after
// its end.
type Job struct {
	pid   int
	guard guard
	done  <-chan struct{}
	state func() *os.ProcessState // valid after done
	aside *os.File                // nil = none, or read
}

// StartJob starts a command without input. ctx bounds only the starting.
//
// A program that cannot be found gives an error that wraps [fs.ErrNotExist].
func StartJob(ctx context.Context, o JobOptions) (*Job, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Path, err)
	}
	cmd, err := o.build()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = o.Output, o.Output
	var pp pipes
	j := &Job{aside: pp.aside(cmd, o.Aside), state: func() *os.ProcessState { return cmd.ProcessState }}
	if pp.err == nil {
		j.done, pp.err = follow(cmd)
	}
	pp.closeChildEnds()
	if pp.err != nil {
		pp.closeOurEnds()
		return nil, fmt.Errorf("starting %s: %w", o.Path, pp.err)
	}
	j.pid = cmd.Process.Pid
	j.guard = watchOver(j.pid)
	return j, nil
}

// Done is closed when the command has ended. What it has started may go on.
func (j *Job) Done() <-chan struct{} { return j.done }

// Stop ends the command and all that it has left behind, with SIGTERM and
// 500 ms later SIGKILL, and returns when they are gone. After the end of the
// command there is no grace.
func (j *Job) Stop() {
	terminate(j.pid, j.done, defaultGrace)
	endGroup(j.guard, j.pid)
	<-j.done
}

// Leave waits for the end of the command and lets go of it; note is what it has
// left aside. Left reports that something which the command has started still
// runs: it goes on until [Job.Stop].
func (j *Job) Leave() (exit Exit, note []byte, left bool) {
	<-j.done
	note = noteOf(j.aside)
	if j.aside != nil {
		j.aside.Close()
		j.aside = nil
	}
	outside := j.guard
	if left = groupAlive(j.pid); left {
		j.guard = watch(j.pid)
	}
	outside.end() // not before there is another one
	return exitOf(j.state()), note, left
}
