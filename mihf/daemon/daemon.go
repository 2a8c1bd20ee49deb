package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Task is one long-lived part of the daemon.
type Task interface {
	// Run works until ctx ends and then returns nil. It is called once.
	Run(ctx context.Context) error
	// Ready is closed when the task does what it is there for.
	Ready() <-chan struct{}
	// String names the task.
	String() string
}

// NewTask makes a task of a function, which calls ready when it is; more than once does no
// harm.
func NewTask(name string, run func(ctx context.Context, ready func()) error) Task {
	return &task{name: name, run: run, ready: make(chan struct{})}
}

type task struct {
	name  string
	run   func(ctx context.Context, ready func()) error
	ready chan struct{}
	once  sync.Once
}

func (t *task) Run(ctx context.Context) error {
	return t.run(ctx, func() { t.once.Do(func() { close(t.ready) }) })
}

func (t *task) Ready() <-chan struct{} { return t.ready }
func (t *task) String() string         { return t.name }

// PanicError is a panic of a task.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Serve runs the tasks until ctx ends, one of them fails, or all have ended by themselves.
// A task that ended without an error counts as ready. The error names the task that failed
// first. Logger nil discards; notify nil tells nobody.
func Serve(ctx context.Context, log *slog.Logger, notify Notify, tasks ...Task) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g, ctx := errgroup.WithContext(ctx)
	ended := make([]chan struct{}, len(tasks))
	for i, t := range tasks {
		ended[i] = make(chan struct{})
		g.Go(func() error {
			defer close(ended[i])
			return run(ctx, t)
		})
	}
	var announcer sync.WaitGroup
	announcer.Go(func() {
		if ready(ctx, tasks, ended) {
			log.Info("ready")
			notify.tell(log, Ready)
		}
		<-ctx.Done()
		log.Info("stopping")
		notify.tell(log, Stopping)
	})
	err := g.Wait() // which ends ctx
	announcer.Wait()
	return err
}

func run(ctx context.Context, t Task) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		switch {
		case err == nil:
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			err = nil
		default:
			err = fmt.Errorf("%s: %w", t, err)
		}
	}()
	return t.Run(ctx)
}

// ready waits until all tasks are, and returns false where ctx ends before.
func ready(ctx context.Context, tasks []Task, ended []chan struct{}) bool {
	for i, t := range tasks {
		select {
		case <-t.Ready():
		case <-ended[i]:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}
