// Command vectors prints random pod templates, one a line: as Go writes the struct, a tab, and the revision data Go
// makes of it.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"time"

	fuzz "github.com/google/gofuzz"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Longer templates repeat what shorter ones show.
const (
	count   = 40
	longest = 3000
)

var quantities = []string{"0", "1", "100m", "1Gi", "1000m", "1024Mi", "0.5", "1e3", "1500000000", "3.25", "-1"}

func main() {
	fuzzer := fuzz.New().RandSource(rand.NewSource(3)).NilChance(.6).NumElements(0, 2).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c fuzz.Continue) { *q = resource.MustParse(quantities[c.Intn(len(quantities))]) },
		func(v *intstr.IntOrString, c fuzz.Continue) {
			if c.RandBool() {
				*v = intstr.FromInt32(int32(c.Intn(3)))
			} else {
				*v = intstr.FromString(c.RandString())
			}
		},
		func(t *metav1.Time, c fuzz.Continue) { *t = metav1.NewTime(time.Unix(int64(c.Intn(2000000000)), 0)) },
		func(f *metav1.FieldsV1, _ fuzz.Continue) { f.Raw = []byte(`{"f:a":{}}`) },
		func(s *string, c fuzz.Continue) {
			if c.RandBool() {
				*s = c.RandString()
			}
		},
		func(n *int64, c fuzz.Continue) {
			switch c.Intn(3) {
			case 1:
				*n = int64(c.Intn(100))
			case 2:
				*n = c.Int63()
			}
		},
	)
	for printed := 0; printed < count; {
		var template corev1.PodTemplateSpec
		fuzzer.Fuzz(&template)
		typed := marshal(template)
		if len(typed) > longest {
			continue
		}
		var untyped map[string]any
		if err := json.Unmarshal(typed, &untyped); err != nil {
			fail(err)
		}
		untyped["$patch"] = "replace"
		data := marshal(map[string]any{"spec": map[string]any{"template": untyped}})
		fmt.Printf("%s\t%s\n", typed, data)
		printed++
	}
}

func marshal(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		fail(err)
	}
	return text
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
