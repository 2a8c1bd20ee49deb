package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// asDaemon makes the test's own binary the daemon, for tests that need it as a process.
const asDaemon = "MIHFD_TEST_AS_DAEMON"

// noBus is where the daemons of these tests look for a message bus.
const noBus = "unix:path=/nonexistent/bus"

var busVariables = []string{"DBUS_SYSTEM_BUS_ADDRESS", "DBUS_SESSION_BUS_ADDRESS"}

func TestMain(m *testing.M) {
	if os.Getenv(asDaemon) != "" {
		main()
	}
	for _, v := range busVariables { // the daemons of these tests are on nobody's bus
		if err := os.Setenv(v, noBus); err != nil {
			panic(err)
		}
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
			for _, v := range busVariables {
				e.Setenv(v, noBus)
			}
			return nil
		},
	})
}
