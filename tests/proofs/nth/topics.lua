-- Scenarios: what subscribes and publishes. Copies have the tag top; they may end in whichever way.

nth.words('topics', 'later_subscribe news.* sms')
nth.words('topics', 'later_subscribe filed mail')
nth.words('topics', 'later_unsubscribe news mail')
nth.words('topics', 'later_unsubscribe filed mail')
nth.words('topics', 'later_topics')
nth.words('topics', 'later_publish news priority 3 top|')
nth.words('topics', 'later_publish news.more token t top|')
nth.words('topics', 'later_publish news key k top|')
nth.words('topics', 'later_publish nobody top|')
nth.words('topics', 'later_v1_declare_topics $W1 9 last 2 2 mail new 1 sms')
