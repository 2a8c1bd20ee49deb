package level_test

import (
	"testing"

	"mihf.dev/predictors/level"
	"mihf.dev/predictors/predictorstest"
)

func TestConformance(t *testing.T) { predictorstest.Run(t, level.Method()) }
