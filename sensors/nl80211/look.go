package nl80211

import (
	"errors"

	"golang.org/x/sys/unix"
)

// list reads the interfaces. A list that changes all the time is read again soon.
func (s *session) list() error {
	list, err := s.kernel.interfaces()
	if errors.Is(err, errTorn) {
		s.state.listAt = s.now().Add(refusedEvery)
		err = nil
	} else if err == nil {
		s.state.setInterfaces(s.now(), list)
	}
	return err
}

// visit does what is due on an interface. What the driver refuses ends nothing.
func (s *session) visit(r *radio) error {
	now := s.now()
	if r.identifyAt.Due(now) || (r.id != "" && s.sensor.opt.Link != nil) {
		r.identify(now, s.sensor.identify(r.info.index))
	}
	var err error
	switch {
	case r.lookAt.Due(now), r.pollAt.Due(now) && r.peer == "":
		err = s.look(r)
	case r.pollAt.Due(now):
		err = s.poll(r)
	}
	if err == nil && r.resultsAt.Due(s.now()) {
		err = s.results(r)
	}
	if err == nil && r.surveyAt.Due(s.now()) {
		err = s.survey(r)
	}
	if refused(err) {
		s.sensor.count.refused.Add(1)
		r.refused(s.now(), err.Error())
		return nil
	}
	return err
}

// look reads all that is to be known of an interface.
func (s *session) look(r *radio) error {
	r.lookAt, r.pollAt = 0, 0
	turns := r.turns
	i, found, err := s.kernel.iface(r.info.index)
	switch {
	case err != nil:
		return err
	case !found, !i.follows():
		s.state.list(s.now()) // it is gone, or another kind
		return nil
	}
	r.info = i
	list, err := s.kernel.stations(i.index)
	if err != nil {
		return err
	}
	rd := reading{iface: i, station: choose(&i, list)}
	if r.needsScan(s.now(), rd.station) {
		if rd.bss, err = s.kernel.scan(i.index); err != nil {
			return err
		}
		rd.hasBSS = true
		if rd.station == nil {
			rd.station, err = s.byAddress(r, rd.bss)
		}
		if err != nil {
			return err
		}
	}
	return s.take(r, turns, &rd)
}

// take stores a reading, unless the attachment took another turn while it was read: then
// that is told first, and all is looked at again.
func (s *session) take(r *radio, turns int, rd *reading) error {
	if err := s.hear(); err != nil {
		return err
	}
	if r.turns != turns {
		return nil // the message asked for a look
	}
	r.take(s.now(), rd)
	return s.threshold(r)
}

// byAddress asks for the station of the access point that the scan results show as
// associated: some drivers leave it out of the list.
func (s *session) byAddress(r *radio, list []bssInfo) (*stationInfo, error) {
	for i := range list {
		if !list[i].associated {
			continue
		}
		poa := list[i].bssid
		if list[i].mld != "" {
			poa = list[i].mld
		}
		st, found, err := s.kernel.station(r.info.index, poa)
		if found {
			return &st, nil
		}
		if err != nil && !refused(err) {
			return nil, err
		}
		return nil, nil
	}
	return nil, nil
}

// poll reads the peer only; where it is gone, all.
func (s *session) poll(r *radio) error {
	turns := r.turns
	st, found, err := s.kernel.station(r.info.index, r.peer)
	if err != nil {
		return err
	}
	if !found {
		return s.look(r)
	}
	return s.take(r, turns, &reading{iface: r.info, station: &st})
}

// results reads the scan results for what was detected.
func (s *session) results(r *radio) error {
	r.resultsAt = 0
	list, err := s.kernel.scan(r.info.index)
	if err != nil {
		return err
	}
	r.detected(s.now(), list)
	return nil
}

// survey reads how busy the channel is, where the driver tells.
func (s *session) survey(r *radio) error {
	r.surveyAt = s.now().Add(surveyEvery)
	info, found, err := s.kernel.survey(r.info.index)
	switch {
	case isErrno(err, unix.EOPNOTSUPP):
		r.noSurvey, r.surveyAt = true, 0
	case err != nil && !refused(err):
		return err
	case found:
		r.busy.take(s.now(), info)
	}
	return nil
}

// threshold sets the signal threshold of a new attachment, where that is asked for.
func (s *session) threshold(r *radio) error {
	if !r.wantsCQM() {
		return nil
	}
	r.cqmFor, r.cqmError = r.now.poa, ""
	err := s.kernel.setCQM(r.info.index, int(s.cfg.near))
	if !refused(err) {
		return err
	}
	r.cqmError = err.Error()
	if isErrno(err, unix.EPERM) {
		r.cqmError += " (set_cqm needs CAP_NET_ADMIN)"
	}
	return nil
}
