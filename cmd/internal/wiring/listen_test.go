package wiring

import "testing"

// TestListenTCPBeforeTheAddress: the addresses are of no machine (documentation ranges).
func TestListenTCPBeforeTheAddress(t *testing.T) {
	for _, address := range []string{"192.0.2.77:0", "[2001:db8::77]:0", "127.0.0.1:0", ":0"} {
		l, err := ListenTCP(t.Context(), address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := ListenTCP(t.Context(), "127.0.0.1:port"); err == nil {
		t.Error("listened on no port")
	}
}
