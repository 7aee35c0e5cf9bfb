package data

// What trials that are shipped, and the quick presets, were computed
// with. A test with real data holds these to it; keys of stored trials depend
// on every digit.

var knownViews = map[string]Facts{
	"mnist train, classes [3 5]": {"2a9bd473c147d021938093ea6cb94ebc05607ebf6ca9c88ef4041cdbcf2d9d18", 11552, false},
	"mnist train, classes [0 1]": {"1e3031a9d767374b1f6227dd00722c57d2aa1d382414e09366d13b470b9b6848", 12665, false},
	"mnist train, classes [0 1], first 500": {
		"afc807c1758408b32df7789ce8df02fb13dec5458b1d369fbe97846c7100511a", 500, false,
	},
	"mnist test, classes [0 1]":   {"9a209e906eaa41a6f88349eedb4581602785bf3af1f5d190d93bd18a3b58d236", 2115, false},
	"cifar-10 train":              {"3ca63dc2270e708eb5bc776433c93c4c62e2bf6e9ff0728d6910e852b5bfb014", 50000, false},
	"cifar-10 train, first 10000": {"1b493db27e29d452755a9c634f26906e2afe9e5f7a21c2e1b1f0814a410a0fd5", 10000, false},
	"cifar-10 train, first 4000":  {"2de6530ebf757917d8ce6efb35c28f24ba31a04d79fe752f0e3a1da93675195e", 4000, false},
	"cifar-10 train, first 2000":  {"41d5d27c45b7a8f0de08188764efe1a65769c5cbcb8db3a4e18a97e27d0bdfaa", 2000, false},
	"cifar-10 train, first 1000":  {"29f2b08a7fc64d9f660386cbf0939f2c7f019d0e5673d956d952612e1f11adb2", 1000, false},
	"cifar-10 test, first 1000":   {"343727a0aaa1f290088a711206626af599f551e4fc4947ab8eeff2671421b2fd", 1000, false},
}

// NASBench201Fingerprint is that of the table that shipped trials used: nasbench201.csv and nats_per_trial_e200.csv.
const NASBench201Fingerprint = "5a4329bc38400ae25aadb62378e6ba455e6355e23a4137e0dd9bbf840e250c71"

// The fingerprints of the tables that shipped trials used: nb101_108_subset151644.csv, and weightsharing_proxy.csv,
// which names its cells.
const (
	NASBench101Fingerprint = "115037c49ca280b317023c8b245681d75bbbbfc16d54b323dd5d080cc672aa4d"
	Shared101Fingerprint   = "d94f41b3ca929445e93262fa7fb439190099f5cfa4db87e59022539f16d6bf53"
)

var knownReviews = map[string]Facts{
	"imdb train, 3000": {"16578b79f006c8ad2f8aa8a7706f3d738a0a0673f3c5b479baa93fc593169ee6", 3000, false},
	"imdb valid, 1500": {"2b4bcc8b6009cb83d5e3ae16f6e427a87e2d91c92f58f349f262bb4e7975faf1", 1500, false},
	"imdb test, 2000":  {"6b91494d21a17e8d6605ddeef758dbf6a440e1aeb04e6608fa3831aaf48a5091", 2000, false},
	"imdb train, 0":    {"7710877f738d98a29a9e9675072d72e47578ca13a966a9afdfa80355cfb517f1", 25000, false},
	"imdb valid, 0":    {"1b2b83f29ed3e0f1c22c8d3ac9723650db0203c57cfde131e1e30be3a2ae98fa", 12500, false},
	"imdb test, 0":     {"edba3c94796204fda8f3e3526ad6043d59a60d5b1562159cfc4dba1786b73fba", 12500, false},
}
