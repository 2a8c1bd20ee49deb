package freeze

import "mihf.dev/cmd/mihsim/internal/experiment"

// Experiments lists those of this package.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		{Name: "freeze-handover", Short: "hand-overs between four technologies: TFRC, Freeze, Freeze with LCI (Tables 3, 5, 6, figure 8)", Runs: 20, Run: runHandover},
	}
}
