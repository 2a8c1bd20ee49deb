// Package wifi tests the sensors, and the whole path, on the kernel's own Wi-Fi: simulated
// radios (mac80211_hwsim) with hostapd and wpa_supplicant in a guest (integration/vm), and
// between them an air whose signals the test sets (integration/vm/medium).
//
// `go test ./integration/vm/wifi` boots the guest by itself; -run and -v work as usual. The
// scenarios share one guest and its radios, so they run one after another: radio 0 is the
// station wlan0, radios 1 and 2 are access points.
package wifi
