package score

import "math"

// Budget is the number of false alarms an hour at which recall is reported.
const Budget = 6

// Row is the figures of one horizon, over all traces.
type Row struct {
	HorizonS         float64  `json:"horizon_s"`
	Events           int      `json:"events"`
	Precision        float64  `json:"precision"`
	Recall           float64  `json:"recall"`
	F1               float64  `json:"f1"`
	LeadP10S         *float64 `json:"lead_p10_s"` // null: no hit
	LeadP50S         *float64 `json:"lead_p50_s"`
	LeadP90S         *float64 `json:"lead_p90_s"`
	FalseAlarmsPerH  float64  `json:"false_alarms_per_h"`
	Brier            float64  `json:"brier"`
	BrierSkill       float64  `json:"brier_skill"`
	BrierSkillLow    float64  `json:"brier_skill_low"` // lower end of the 95 % interval
	ReliabilityError float64  `json:"reliability_error"`
	RecallAt6PerH    float64  `json:"recall_at_6_per_h"`
	Late             int      `json:"late"`
	Hours            float64  `json:"hours"`
	Reliability      []Bin    `json:"reliability"`
}

// reliable is from which probability on, and for how many seconds said, the reliability
// counts.
const (
	reliableFrom    = 0.3
	reliableSeconds = 10
)

// Rows judges series, one a trace, by the alarms that stand in them.
func Rows(all []*Series) []Row {
	if len(all) == 0 {
		return nil
	}
	rows := make([]Row, all[0].Judged)
	for h, horizon := range all[0].Horizons[:len(rows)] {
		var sum Tally
		var cal Calibration
		files := make([]Calibration, len(all))
		for i, s := range all {
			r := s.Trace.Alarms(s.Standing(h), horizon.Seconds())
			sum.Add(&r)
			files[i] = s.Calibrate(h)
			cal.Add(&files[i])
		}
		bins := cal.Reliability()
		low, _ := SkillInterval(files, 1)
		rows[h] = Row{
			HorizonS: horizon.Seconds(), Events: sum.Events, Precision: sum.Precision(), Recall: sum.Recall(), F1: sum.F1(),
			LeadP10S: known(sum.Lead(0.1)), LeadP50S: known(sum.Lead(0.5)), LeadP90S: known(sum.Lead(0.9)),
			FalseAlarmsPerH: sum.FalsePerHour(), Brier: cal.Brier(), BrierSkill: cal.Skill(), BrierSkillLow: low,
			ReliabilityError: cal.Worst(reliableFrom, reliableSeconds), RecallAt6PerH: RecallAt(all, h, Budget),
			Late: sum.Late, Hours: sum.Seconds / 3600, Reliability: bins[:],
		}
	}
	return rows
}

func known(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}
