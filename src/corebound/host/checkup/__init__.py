"""What on a host would disturb a measurement: read once, judged purely, changed only if asked."""
