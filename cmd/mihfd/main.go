// Command mihfd is the daemon: it senses the machine's links, forecasts their loss, and
// tells transports over its fronts.
//
// Usage:
//
//	mihfd [-config FILE] [-live]
//	mihfd -check [-config FILE]
//	mihfd -sample | -version
//
// Without a configuration file the defaults are in force; -sample prints them, commented.
// It needs no rights: as an ordinary user it has a user's paths (docs/configuration.md).
// SIGHUP reads the configuration again; SIGINT or SIGTERM ends the daemon, a second one
// kills it.
//
// Exit status: 0 it ended because it was told to, or what was asked for went well; 1 it
// failed while running, or -check found something; 2 wrong usage or configuration.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"

	"mihf.dev/cmd/internal/wiring"
	"mihf.dev/mihf/config"
	"mihf.dev/mihf/daemon"
)

// Exit statuses. Wrong usage has that of sysexits.h (EX_CONFIG), and not 2: with 2 Go itself
// ends a program that panicked or that the watchdog aborted, and those must be restarted.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 78
)

func main() {
	caught := daemon.Catch() // before all else: no signal kills a daemon that only just started
	os.Exit(run(caught, os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	config                       string // "": the default path, which need not exist
	check, sample, version, live bool
}

func run(caught *daemon.Caught, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err != nil || o.version || o.sample || o.check {
		caught.Release()
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage // which package flag has printed
	case o.version:
		_, err = fmt.Fprintln(stdout, "mihfd", wiring.Version())
	case o.sample:
		_, err = io.WriteString(stdout, config.Sample())
	case o.check:
		return check(o, stdout, stderr)
	default:
		return serve(caught, o, stderr)
	}
	if err != nil {
		say(stderr, "mihfd:", err)
		return exitFailed
	}
	return exitOK
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("mihfd", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.config, "config", "", "configuration `file`; without it the default one, if it is there")
	f.BoolVar(&o.check, "check", false, "check the configuration and end")
	f.BoolVar(&o.sample, "sample", false, "print a commented configuration and end")
	f.BoolVar(&o.version, "version", false, "print the version and end")
	f.BoolVar(&o.live, "live", false, "show a live view in the terminal; q ends it and the daemon")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", f.Arg(0))
		say(stderr, "mihfd:", err)
		say(stderr, `the daemon takes flags only: "mihfd -help" names them; what asks a running one is mihctl`)
		return o, err
	}
	return o, nil
}

// say tells the user something; where nobody listens there is nobody to complain to.
func say(w io.Writer, what ...any) { _, _ = fmt.Fprintln(w, what...) }

func paths() config.Paths {
	return config.FindPaths(os.Getenv, os.Geteuid(), func(dir string) bool {
		info, err := os.Stat(dir)
		return err == nil && info.IsDir()
	})
}

// load reads the configuration that is named, or the default one if it is there, and checks
// that it can be had on this machine. file is the one that was read; "": none.
func load(named string, p config.Paths) (cfg config.Config, file string, err error) {
	file = named
	if named == "" {
		file = p.Config
	}
	cfg, err = config.Load(file, wiring.Known())
	if named == "" && errors.Is(err, fs.ErrNotExist) {
		return config.Defaults(), "", nil
	}
	if err != nil {
		return cfg, file, err
	}
	return cfg, file, config.Locate(file, wiring.Check(&cfg))
}

// check says whether the daemon would start with the configuration.
func check(o options, stdout, stderr io.Writer) int {
	p := paths()
	_, file, err := load(o.config, p)
	if err != nil {
		say(stderr, err)
		return exitFailed
	}
	text := file + ": ok"
	if file == "" {
		text = p.Config + ": not there; the defaults are in force"
	}
	if _, err := fmt.Fprintln(stdout, text); err != nil {
		return exitFailed
	}
	return exitOK
}
