"""The web page of the console. It reads what `console` tells, and gives its commands; nothing more."""
