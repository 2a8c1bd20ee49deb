package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// asDaemon makes the test's own binary the daemon, for tests that need it as a process.
const asDaemon = "MIHFD_TEST_AS_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(asDaemon) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"mihfd": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			for _, v := range []string{"CONFIGURATION", "STATE", "RUNTIME"} {
				e.Setenv(v+"_DIRECTORY", e.WorkDir)
			}
			return nil
		},
	})
}
