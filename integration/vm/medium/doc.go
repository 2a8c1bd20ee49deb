// Package medium is the air between the radios of mac80211_hwsim, the kernel's simulated
// Wi-Fi driver: every frame that a radio sends comes here and reaches the others with the
// signal that each pair has at that moment, or not at all.
//
//	m, err := medium.Open(medium.NewAir(seed))  // the kernel's own perfect medium ends here
//	go m.Run(ctx)
//	m.SetLoss(medium.SNR{})                     // losses by signal and rate; without: none
//	m.Join(0, 1, medium.Steady(-50))            // radios 0 and 1 hear each other at -50 dBm
//	m.Join(0, 1, medium.NewPath(model))         // or: one walks away
//	m.Truth(1, 0).LastData                      // when 1 last got a data frame through to 0
//
// [Air] decides, without clock or socket: what happens to a frame at a moment. [Medium] is the
// shell that speaks with the kernel.
//
// Guarantees:
//
//   - A receiver reads the signal that its pair has, rounded to 1 dBm; the same seed and the
//     same frames at the same moments give the same losses. A pair that was not joined hears
//     nothing.
//   - A sender is told what became of its frame as a radio would: acknowledged, at which rate,
//     after how many tries. A frame counts as delivered when the receiver's driver has taken
//     it: a radio that is off or on another channel takes none.
//   - [Truth] of a pair has the moment and the number of the data frames that came through.
//     Keep-alives without content (null frames) are no data.
//   - Nothing grows without bound: at most [MaxRadios] radios and [MaxAddresses] addresses.
//
// Limits: no interference, collisions or hidden stations, and frames take no time in the air.
// Frames to one station are given to that station's radio alone, where its address is known.
// A receiver sees the rate of legacy frames; others it takes for the lowest. Needs
// CAP_NET_ADMIN, and is the only medium of its network namespace.
package medium

// MaxRadios and MaxAddresses bound what an Air knows.
const (
	MaxRadios    = 64
	MaxAddresses = 1024
)

// A Radio is the number that the driver gives a radio, in the order of their making.
type Radio int
