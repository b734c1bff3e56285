// Command schedules prints schedules, one a line: the text, a tab, a moment, a tab, and the next moment that the cron
// library names, or "-" if it finds none. Half of the moments are near a change of the clocks.
package main

import (
	"fmt"
	"math/rand"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

const count = 2000

var (
	source = rand.New(rand.NewSource(5))
	zones  = []string{
		"Europe/Oslo", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca",
	}
	// The years for which all databases of time zones agree.
	first = time.Date(2008, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	last  = time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
)

func main() {
	changes := map[string][]int64{}
	for _, zone := range zones {
		changes[zone] = changesOf(zone)
	}
	for printed := 0; printed < count; {
		zone := pick(zones...)
		text := fmt.Sprintf("%s=%s %s", pick("TZ", "CRON_TZ"), zone, schedule())
		read, err := cron.ParseStandard(text)
		if err != nil {
			continue
		}
		after := first + source.Int63n(last-first)
		if near := changes[zone]; source.Intn(2) == 0 {
			after = near[source.Intn(len(near))] + source.Int63n(4*24*3600) - 3*24*3600
		}
		moment := time.Unix(after, int64(source.Intn(3))*499_999_999).UTC()
		next := "-"
		if found := read.Next(moment); !found.IsZero() {
			next = found.UTC().Format(time.RFC3339Nano)
		}
		fmt.Printf("%s\t%s\t%s\n", text, moment.Format(time.RFC3339Nano), next)
		printed++
	}
}

// changesOf lists the moments at which the clocks of a zone are changed.
func changesOf(zone string) (changes []int64) {
	location, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	for at := first; at < last; {
		_, end := time.Unix(at, 0).In(location).ZoneBounds()
		if end.IsZero() {
			break
		}
		at = end.Unix()
		changes = append(changes, at)
	}
	return changes
}

func schedule() string {
	switch source.Intn(20) {
	case 0:
		return pick("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
	case 1:
		return "@every " + pick("1s", "90s", "1h30m", "1500ms", "10ms", "24h", "1h0m0.5s", "-5m")
	}
	return strings.Join([]string{
		field(0, 59, nil), field(0, 23, nil), field(1, 31, nil), field(1, 12, months), field(0, 6, days),
	}, " ")
}

var (
	months = []string{"JAN", "feb", "Mar", "APR", "may", "jun", "JUL", "aug", "sep", "Oct", "nov", "DEC"}
	days   = []string{"SUN", "mon", "Tue", "wed", "THU", "fri", "sat"}
)

func field(least, most int, names []string) string {
	items := []string{item(least, most, names)}
	for source.Intn(3) == 0 {
		items = append(items, item(least, most, names))
	}
	return strings.Join(items, ",")
}

func item(least, most int, names []string) string {
	number := func() string {
		value := least + source.Intn(most-least+1)
		if names != nil && source.Intn(2) == 0 {
			return names[value-least]
		}
		return fmt.Sprint(value)
	}
	step := func() string { return fmt.Sprintf("/%d", 1+source.Intn(most)) }
	switch source.Intn(9) {
	case 0, 1, 2:
		return pick("*", "?")
	case 3:
		return pick("*", "?") + step()
	case 4:
		return number() + step()
	case 5:
		return number() + "-" + number()
	case 6:
		return number() + "-" + number() + step()
	}
	return number()
}

func pick(from ...string) string { return from[source.Intn(len(from))] }
