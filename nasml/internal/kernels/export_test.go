package kernels

import "testing"

// DivideFrom divides programs of more than few calls for the time of a test.
func DivideFrom(t testing.TB, few, least, most int) {
	before := divided
	divided.few, divided.least, divided.most = few, least, most
	t.Cleanup(func() { divided = before })
}
