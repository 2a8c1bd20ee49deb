// Package wifi tests the daemon on the kernel's own Wi-Fi: simulated radios (mac80211_hwsim) with
// hostapd and wpa_supplicant in a guest (integration/vm), and between them an air whose signals
// the test sets (integration/vm/medium). Each scenario runs a real mihfd and sees it by a client
// over each front, gRPC, NATS and D-Bus, which must have had the same events.
//
// `go test ./integration/vm/wifi` boots the guest by itself; -run and -v work as usual. Its time
// is its own: what a busy host delays is not late. The scenarios share one guest and its radios,
// so they run one after another: radio 0 is the station wlan0, radios 1 and 2 are access points,
// the others stations of tests with several.
package wifi
