"""Other people's engines, each behind a front of ours: nothing else imports them."""
