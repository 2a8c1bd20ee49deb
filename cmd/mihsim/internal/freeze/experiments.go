package freeze

import "mihf.dev/cmd/mihsim/internal/experiment"

// Experiments lists those of this package.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		{Name: "freeze-model", Short: "the model of a disconnection against the simulation (Tables 3 and 4, figure 6)", Runs: 20, Run: runModel},
		{Name: "freeze-handover", Short: "hand-overs between four technologies: TFRC, Freeze, Freeze with LCI (Tables 3, 5, 6, figure 8)", Runs: 20, Run: runHandover},
		{Name: "freeze-fairness", Short: "the rate beside TCP NewReno and CUBIC after a hand-over (Table 7)", Runs: 5, Run: runFairness},
		{Name: "freeze-motivation", Short: "TFRC after a hand-over, and after a cell without network (figures 3 and 4)", Runs: 20, Run: runMotivation},
		{Name: "freeze-qoe", Short: "a video on the way from home to a café and back (figures 9 and 10)", Runs: 8, Run: runQoE},
	}
}
