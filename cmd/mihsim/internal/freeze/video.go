package freeze

import (
	"time"

	"mihf.dev/mihf"
)

// video is the application of figures 9 and 10: frames of a constant rate, cut into packets of one
// size, that wait in a bounded queue for leave to go. What comes when the queue is full is dropped.
// It is the source of a flow; a tag is the number of a packet, from 0.
type video struct {
	p       *parameters
	queue   []uint64
	made    uint64 // packets
	frames  int
	dropped int
	begin   mihf.Time
	intime  []int // packets by frame that came in time
}

// frameEnd is the number of the first packet behind a frame: packets are not shared by frames, and
// their mean rate is the video's.
func (v *video) frameEnd(frame int) uint64 {
	bits := uint64(frame+1) * uint64(v.p.QoE.VideoBPS) / uint64(v.p.QoE.FramesPerS)
	return bits / 8 / uint64(v.p.TFRC.SegmentBytes)
}

// captured is when a frame is there.
func (v *video) captured(frame int) mihf.Time {
	return v.begin.Add(time.Duration(int64(frame) * int64(time.Second) / int64(v.p.QoE.FramesPerS)))
}

// next makes the next frame.
func (v *video) next() {
	end := v.frameEnd(v.frames)
	for ; v.made < end; v.made++ {
		if len(v.queue) >= v.p.QoE.SenderQueue {
			v.dropped++
			continue
		}
		v.queue = append(v.queue, v.made)
	}
	v.frames++
	v.intime = append(v.intime, 0)
}

// Next is the source's.
func (v *video) Next(mihf.Time) (uint64, bool) {
	if len(v.queue) == 0 {
		return 0, false
	}
	tag := v.queue[0]
	v.queue = append(v.queue[:0], v.queue[1:]...)
	return tag, true
}

// Waiting is the source's.
func (v *video) Waiting() bool { return len(v.queue) > 0 }

// arrived takes a packet at the viewer.
func (v *video) arrived(now mihf.Time, tag uint64) {
	frame := v.frameOf(tag)
	if now.Sub(v.captured(frame)) <= seconds(v.p.QoE.PlayoutSeconds) {
		v.intime[frame]++
	}
}

// frameOf finds the frame of a packet.
func (v *video) frameOf(tag uint64) int {
	frame := int(tag * 8 * uint64(v.p.TFRC.SegmentBytes) * uint64(v.p.QoE.FramesPerS) / uint64(v.p.QoE.VideoBPS))
	for frame > 0 && v.frameEnd(frame-1) > tag {
		frame--
	}
	for v.frameEnd(frame) <= tag {
		frame++
	}
	return frame
}

// share returns which part of a frame's packets came in time.
func (v *video) share(frame int) float64 {
	first := uint64(0)
	if frame > 0 {
		first = v.frameEnd(frame - 1)
	}
	return float64(v.intime[frame]) / float64(v.frameEnd(frame)-first)
}

// psnr models what is seen, in dB by frame: the part of a frame that came in time is intact, and
// what is missing shows the last frame, of which only a share of what it had above noise fits.
func (v *video) psnr() []float64 {
	q := v.p.QoE
	above, all := q.IntactDB-q.NoiseDB, make([]float64, v.frames)
	last := 0.0 // above noise
	for frame := range all {
		s := v.share(frame)
		last = s*above + (1-s)*q.Conceal*last
		all[frame] = q.NoiseDB + last
	}
	return all
}

// average is the moving average over as many frames as the paper's.
func average(values []float64, n int) []float64 {
	all := make([]float64, len(values))
	sum := 0.0
	for i, v := range values {
		sum += v
		if i >= n {
			sum -= values[i-n]
		}
		all[i] = sum / float64(min(i+1, n))
	}
	return all
}
