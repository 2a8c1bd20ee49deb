package config

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

func (r *rawNATS) into(c *checker, n *NATS) {
	c.oneOf("nats.server", r.Server, &n.Server, NATSNone, NATSEmbedded, NATSExternal)
	c.address("nats.listen", r.Listen, &n.Listen)
	c.path("nats.users", r.Users, &n.Users)
	c.urls("nats.leaf", r.Leaf, &n.Leaf, "nats-leaf", "tls", "nats", "ws", "wss")
	c.urls("nats.servers", r.Servers, &n.Servers, "nats", "tls", "ws", "wss")
	c.path("nats.credentials", r.Credentials, &n.Credentials)
	c.path("nats.cert", r.Cert, &n.Cert)
	c.path("nats.key", r.Key, &n.Key)
	c.path("nats.ca", r.CA, &n.CA)
	c.count("nats.max_connections_per_user", r.MaxConnectionsPerUser, &n.MaxConnectionsPerUser, 1, 4096)
	c.count("nats.max_sessions_per_user", r.MaxSessionsPerUser, &n.MaxSessionsPerUser, 1, 1<<16)
	c.count("nats.max_waiting_per_user", r.MaxWaitingPerUser, &n.MaxWaitingPerUser, 1, 8192)
	set(r.TrustRequestInfo, &n.TrustRequestInfo)
	c.text("nats.identity", r.Identity, &n.Identity, nodeName, "1 to 64 letters, digits, dots, - or _")
	c.must(n.Identity != "", "nats.identity", "must not be empty; leave it out for %q", Defaults().NATS.Identity)
	set(r.History, &n.History)
	c.path("nats.history_dir", r.HistoryDir, &n.HistoryDir)
	c.count("nats.history_max_bytes", r.HistoryMaxBytes, &n.HistoryMaxBytes, 1<<20, 1<<40)
	c.duration("nats.history_max_age", r.HistoryMaxAge, &n.HistoryMaxAge, time.Minute, 30*24*time.Hour)
	n.check(c)
}

// OffHost reports whether what is published can be had on other hosts: an external server's
// users may be anywhere.
func (n *NATS) OffHost() bool {
	switch n.Server {
	case NATSExternal:
		return true
	case NATSEmbedded:
		return len(n.Leaf) > 0 || n.Listen != "" && !loopback(n.Listen)
	}
	return false
}

// check refuses what would have no effect, and what would let anyone in.
func (n *NATS) check(c *checker) {
	c.must(n.Server != NATSExternal || len(n.Servers) > 0, "nats.servers",
		"must be given with nats.server = %q: name the URLs of its servers", NATSExternal)
	c.must(n.Listen == "" || n.Users != "", "nats.users", "must be given with nats.listen: name the file of those who may connect")
	c.must(n.Listen == "" || loopback(n.Listen) || n.Cert != "" && n.CA != "", "nats.listen",
		"%q can be reached from other hosts; give a loopback address, or nats.cert, nats.key and nats.ca for certificates on both sides", n.Listen)
	c.must(n.Server == NATSNone || (n.Cert == "") == (n.Key == ""), "nats.key", "belongs to nats.cert; give both or none")
	for _, k := range []struct {
		key, server string
		given       bool
	}{
		{"nats.listen", NATSEmbedded, n.Listen != ""},
		{"nats.users", NATSEmbedded, n.Users != ""},
		{"nats.leaf", NATSEmbedded, len(n.Leaf) > 0},
		{"nats.history_dir", NATSEmbedded, n.HistoryDir != ""},
		{"nats.servers", NATSExternal, len(n.Servers) > 0 && n.Server != NATSNone},
		{"nats.trust_request_info", NATSExternal, n.TrustRequestInfo},
	} {
		c.must(!k.given || n.Server == k.server, k.key, "is for nats.server = %q, which is %q", k.server, n.Server)
	}
	c.must(!n.History || n.Server != NATSNone, "nats.history", "needs a server; see nats.server")
}

// urls takes a list of URLs of servers. Credentials do not belong there: they would be in
// the log.
func (c *checker) urls(key string, raw []string, v *[]string, schemes ...string) {
	good := len(raw) > 0
	for _, s := range raw {
		u, err := url.Parse(s)
		reason := ""
		switch {
		case err != nil:
			reason = "is no URL"
		case !slices.Contains(schemes, u.Scheme) || u.Hostname() == "":
			reason = "is not of the form scheme://host:port, with a scheme of " + strings.Join(schemes, ", ")
		case u.User != nil:
			c.fail(key, "has a user in it; credentials belong in the file that nats.credentials names")
			good = false
		case u.Path != "" || u.RawQuery != "" || u.Fragment != "":
			reason = "has more than a scheme, a host and a port"
		}
		if reason != "" {
			c.fail(key, "%q %s", s, reason)
			good = false
		}
	}
	if good {
		*v = raw
	}
}
