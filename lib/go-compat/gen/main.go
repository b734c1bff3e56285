// Command gen prints the Rust table of the core/v1 types that pod templates and volume claims are made of: field
// names in Go's order, which of them are omitted when empty, and what they hold.
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	quantity    = reflect.TypeOf(resource.Quantity{})
	intOrString = reflect.TypeOf(intstr.IntOrString{})
	timestamp   = reflect.TypeOf(metav1.Time{})
	fieldsV1    = reflect.TypeOf(metav1.FieldsV1{})
)

type table map[reflect.Type]string

func main() {
	seen := table{}
	seen.visit(reflect.TypeOf(corev1.PodTemplateSpec{}))
	seen.visit(reflect.TypeOf(corev1.PersistentVolumeClaim{}))

	types := make([]reflect.Type, 0, len(seen))
	for t := range seen {
		types = append(types, t)
	}
	sort.Slice(types, func(i, j int) bool { return types[i].Name() < types[j].Name() })

	fmt.Println("//! Types of core/v1 as of Kubernetes 1.32, fields in the order Go declares them.")
	fmt.Println("//!")
	fmt.Println("//! Generated; see `gen/README.md`.")
	fmt.Println()
	fmt.Println("use super::table::{Kind::{Any, Bool, Int, IntOrString, List, Map, Pointer, Quantity, String, Struct as Of, Time}, Struct, always, unless_empty};")
	for _, t := range types {
		fmt.Printf("\npub(super) static %s: Struct = Struct { fields: &[\n%s] };\n", constant(t.Name()), seen[t])
	}
}

func (seen table) visit(t reflect.Type) {
	if _, done := seen[t]; done {
		return
	}
	seen[t] = ""
	var text strings.Builder
	seen.fields(&text, t)
	seen[t] = text.String()
}

func (seen table) fields(text *strings.Builder, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			seen.fields(text, field.Type)
			continue
		}
		if name == "" || name == "-" {
			fmt.Fprintf(os.Stderr, "%s.%s has no JSON name\n", t.Name(), field.Name)
			os.Exit(1)
		}
		emit := "always"
		if strings.Contains(options, "omitempty") {
			emit = "unless_empty"
		}
		fmt.Fprintf(text, "    %s(%q, %s),\n", emit, name, seen.kind(field.Type))
	}
}

func (seen table) kind(t reflect.Type) string {
	switch t {
	case quantity:
		return "Quantity"
	case intOrString:
		return "IntOrString"
	case timestamp:
		return "Time"
	case fieldsV1:
		return "Any"
	}
	switch t.Kind() {
	case reflect.String:
		return "String"
	case reflect.Bool:
		return "Bool"
	case reflect.Int32, reflect.Int64, reflect.Int:
		return "Int"
	case reflect.Pointer:
		return "Pointer(&" + seen.kind(t.Elem()) + ")"
	case reflect.Slice:
		return "List(&" + seen.kind(t.Elem()) + ")"
	case reflect.Map:
		return "Map(&" + seen.kind(t.Elem()) + ")"
	case reflect.Struct:
		seen.visit(t)
		return "Of(&" + constant(t.Name()) + ")"
	}
	fmt.Fprintf(os.Stderr, "no kind for %s\n", t)
	os.Exit(1)
	return ""
}

// constant spells a type name as Rust spells statics: HTTPGetAction becomes HTTP_GET_ACTION.
func constant(name string) string {
	letters := []rune(name)
	var out strings.Builder
	for i, c := range letters {
		starts := i > 0 && unicode.IsUpper(c) &&
			(unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if starts {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToUpper(c))
	}
	return out.String()
}
