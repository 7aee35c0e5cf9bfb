package kernels

import "testing"

// DivideFrom divides programs of more than few calls for the time of a test.
func DivideFrom(t testing.TB, few, part, many int) {
	before := divided
	divided.few, divided.part, divided.many = few, part, many
	t.Cleanup(func() { divided = before })
}
