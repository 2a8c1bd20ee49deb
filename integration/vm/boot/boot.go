// Package boot is what host and guest of integration/vm agree on: the names of what QEMU
// gives the guest, and the job that the guest finds there.
//
// Limits: both sides are built from the same sources, so nothing here has a version.
package boot

// Names of what the host gives the guest.
const (
	HostTag  = "host"  // 9p: the host's files, read-only
	ToolsTag = "tools" // 9p: the programs that were fetched, read-only
	JobTag   = "job"   // 9p: the folder of this run, writable
	Port     = "out"   // the serial port that takes the program's output
	Modules  = "/modules"
	JobDir   = "/run/job" // where the guest has the job's folder
)

// What is in the job's folder.
const (
	JobFile    = "job.json"
	ResultFile = "result.json"
	Bin        = "bin"      // programs that were built for the guest
	Keep       = "keep"     // what the host keeps of the run
	Programs   = "/run/bin" // where the guest has them, in memory
)

// A Job is what the guest is to do.
type Job struct {
	Args    []string   // the program, by path or by name in PATH, and its arguments
	Env     []string   // KEY=value
	Dir     string     // where it starts
	Modules [][]string // kernel modules to load first: name, parameters
	Preload []string   // programs to take into memory first
	Virtual bool       // the guest's clock skips what it sleeps
}

// A Result is how it went.
type Result struct {
	Code  int    // the exit code; 128 and the signal's number where a signal ended it
	Error string // why the program could not be started; "": it ran
}
