package level

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/predictors.md gives the figures that are in force.
func TestDocumentedConstants(t *testing.T) {
	b, err := os.ReadFile("../../docs/predictors.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		fmt.Sprintf("τ = max(%g s, %g intervals), at most %g s", memory, memoryIntervals, memoryMax),
		fmt.Sprintf("N(0, (%g dB/s)²)", slopePrior),
		fmt.Sprintf("over %d samples, starting as %g dB with the weight of %d samples, within %g and %g dB", noiseSamples, noisePrior, noiseWeight, noiseMin, noiseMax),
		fmt.Sprintf("at most %g: shadowing", correlationMax),
		fmt.Sprintf("more than %g standard deviations", gate),
		fmt.Sprintf("1 − %g·var(b)/b²", shrink),
		fmt.Sprintf("T = %g s", persistence),
		fmt.Sprintf("%g·h³/3", slopeWander2),
		fmt.Sprintf("time constant of %g s", proofTime),
		fmt.Sprintf("upwards in %g s", forgetTime),
		fmt.Sprintf("%g, mean time %g s, for %g s", pOrdered, orderedTime, orderValid),
		fmt.Sprintf("heard within %g s", candidateMaxAge),
		fmt.Sprintf("%g·Φ((difference", pBetter),
		fmt.Sprintf("margin %g dB, sd %g dB, mean time %g s for Wi-Fi, and %g dB, %g dB, %g s for cells",
			wifiRule.margin, wifiRule.sd, wifiRule.time, cellRule.margin, cellRule.sd, cellRule.time),
		fmt.Sprintf("%g s at most", scanMax.Seconds()),
	}
	for _, fl := range floors {
		want = append(want, fmt.Sprintf("| `%s` | %g | %g |", fl.parameter, fl.mean, fl.sd))
	}
	for _, w := range want {
		if !strings.Contains(string(b), w) {
			t.Errorf("the document does not say %q", w)
		}
	}
}
