package engine

import "mihf.dev/mihf"

// always are the kinds of event that need no observation of a link.
var always = mihf.Kinds(mihf.SensorConditionChanged, mihf.Resync, mihf.ResumedFromSuspend)

// leadsTo returns the kinds of event that an observation of the kind can lead to.
func (e *Engine) leadsTo(k mihf.ObservationKind) mihf.KindSet {
	switch k {
	case mihf.ObsLink, mihf.ObsLinkGone:
		return mihf.Kinds(mihf.LinkUp, mihf.LinkDown, mihf.LinkRenamed, mihf.LinkRemoved, mihf.AddressChanged, mihf.PathUsable, mihf.PathLost)
	case mihf.ObsAssociation:
		return mihf.Kinds(mihf.LinkUp, mihf.LinkDown, mihf.LinkHandoverComplete)
	case mihf.ObsRadio:
		s := mihf.Kinds(mihf.LinkParametersReport, mihf.LinkHandoverComplete) // a sample names its point of attachment
		if e.cfg.NewPredictor != nil {
			s |= mihf.Kinds(mihf.LinkGoingDown, mihf.LinkEventRollback, mihf.PredictionExpired)
		}
		return s
	case mihf.ObsDetected:
		return mihf.Kinds(mihf.LinkDetected)
	case mihf.ObsHandover:
		return mihf.Kinds(mihf.LinkHandoverImminent)
	case mihf.ObsEgress:
		return mihf.Kinds(mihf.DefaultRouteChanged, mihf.LinkHandoverComplete)
	default:
		return 0
	}
}
